"""The submit description language: from a text to clusters of job ads.

=====================  =====================================================================================
:mod:`.lines`          logical lines: continuations, comments, ``@=`` blocks
:mod:`.macros`         ``$(name)``, ``$FUNCTION(…)``; :mod:`.functions` has the functions
:mod:`.queue_statement`  ``queue`` in all its forms; :mod:`.itemdata` gives each job its live names
:mod:`.build_context`   what a section works on; :mod:`.pending_attributes` records what it asked for and wrote
sections               :mod:`.program`, :mod:`.policy`, :mod:`.resources`, :mod:`.transfer`, :mod:`.requirements`
:mod:`.maker`          runs the sections, for later jobs only those that can come out differently
:mod:`.clusters`       cluster ad and per-job differences as text
:mod:`.description`    the whole: reads a description
=====================  =====================================================================================

Pure: the caller's folder, environment, clock, configuration and file system come in as `Environment`.
"""

from __future__ import annotations

from condor_actors.submit.clusters import Cluster
from condor_actors.submit.description import Description, Options
from condor_actors.submit.environment import Environment, FileSystem
from condor_actors.submit.errors import SubmitError

__all__ = ["Cluster", "Description", "Environment", "FileSystem", "Options", "SubmitError"]
