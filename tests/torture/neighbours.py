"""What is borrowed from the other folders of tests."""

import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / "crash"), str(TESTS / "cli")]

from arena import Schema, Violation, broken_rules
from redis_server import program as redis_program

__all__ = ["TESTS", "Schema", "Violation", "broken_rules", "redis_program"]
