"""Wrong documents and commands, each with its whole answer: ``pages/*.md``, one section each.

A section has the files that a user wrote, and a console with the command, its answer, and its exit code. The commands
run through the real command line, against the real routes. ``python -m tests.wrong_inputs.scorecard`` counts how much
the answers say; ``--write`` puts the figures into docs/internals/answers.md.
"""
