"""ACLs: bindings, how they are found, created and deleted, and what they allow. Read `binding.py` first."""
