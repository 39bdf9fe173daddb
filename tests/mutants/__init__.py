"""Bugs put into the code on purpose, one at a time: the tests of the code's own directory have to catch each.

``make mutants`` runs them all, ``make mutants ONLY=name`` some.  Each package has its list here, as data: see
:class:`~tests.mutants.mutation.Mutation`.
"""
