"""The lines of a member written in Python: see members/__init__.py."""

import json
import queue
import sys
import threading


class Console:
    def __init__(self):
        self.options = json.loads(sys.argv[1])
        self.owned = set()
        self.orders = queue.Queue()
        self.leaves = threading.Event()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in sys.stdin:
            if line.strip() == "leave":
                self.leaves.set()
            self.orders.put(line.strip())
        # The test ended: nobody reads on.
        self.leaves.set()
        self.orders.put("leave")

    def say(self, *words):
        print(*words, flush=True)

    def owns(self, places):
        self.owned = set(places)
        self.say("owns", *(f"{topic}:{partition}" for topic, partition in sorted(self.owned)))

    def gains(self, places):
        self.owns(self.owned | set(places))

    def gives(self, places):
        self.say("gave", *(f"{topic}:{partition}" for topic, partition in sorted(places)))
        self.owns(self.owned - set(places))

    def handled(self, topic, partition, offset, value):
        self.say("record", topic, partition, offset, value.decode())

    def may_commit(self):
        """Whether to commit now; false where it shall leave in place of that."""
        if not self.options["ask"]:
            return True
        self.say("commit?")
        return self.orders.get() == "commit"
