"""The ``condor_*`` commands: one module a command, ``main()`` its entry; each imports only what it uses."""
