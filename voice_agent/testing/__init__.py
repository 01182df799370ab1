"""Helpers for tests of code that speaks: a virtual clock, a click detector and the conformance kit for sinks."""
