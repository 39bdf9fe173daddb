"""Work that a machine fetches by itself (hooks that fetch work): what is fetched, when, and what becomes of a run."""
