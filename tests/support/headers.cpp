// Nothing of its own: the target whose precompiled headers all tests use.
