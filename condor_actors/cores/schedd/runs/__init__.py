"""The runs of jobs: begun on a claim, followed while they last, judged once at their end."""
