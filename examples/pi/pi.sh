#!/bin/sh
# Throw darts at a square and report how many fell into its circle. Usage: pi.sh SEED DARTS
# The first attempt of every third seed fails on purpose: max_retries in pi.sub runs it again.
if [ $(($1 % 3)) -eq 0 ] && grep -q '^NumJobStarts = 0' "$_CONDOR_JOB_AD"; then
    echo "a deliberate failure, to be retried" >&2
    exit 3
fi
awk -v seed="$1" -v darts="$2" 'BEGIN {
    srand(seed); for (i = 0; i < darts; i++) { x = rand(); y = rand(); if (x * x + y * y <= 1) hits++ }
    print hits, darts }'
