#!/bin/sh
# The ten most frequent words of a text, longest first among equals. Usage: count.sh TEXT
tr -cs '[:alpha:]' '\n' < "$1" | tr '[:upper:]' '[:lower:]' | awk 'length > 4' | sort | uniq -c | sort -k1,1nr -k2 | head -10
