"""The language of DAG files, and what a run of one decides."""
