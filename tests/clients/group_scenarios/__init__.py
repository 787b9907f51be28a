"""What tests/clients/groups checks, one file per subject. A scenario is a function that is given a Scene and raises Mismatch."""
