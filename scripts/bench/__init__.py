"""What `scripts/bench-peers` and `scripts/bench-memory` share: fetching peers, starting brokers, reading /proc, writing
results. Only Python's standard library; the brokers are started by the harness of the client tests."""

import pathlib
import sys

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent.parent
CACHE = CHECKOUT / ".cache"

sys.path.insert(0, str(CHECKOUT / "tests/clients"))
