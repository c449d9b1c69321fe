"""What all structures under torture have in common."""

NAMES = ("a", "b")
SKEW = 1.0  # of the clients whose clocks are wrong, at most


class Structure:
    """`command` draws the next command of a worker (its words, and what check wants to know of it); `last` are the commands that
    tell how it ended, when all faults are over; `heal` those that are to make copies whole; `check` yields (column, what is wrong)."""

    skewed = False  # clocks may be wrong
    one_copy = False  # it has no more
    forgets = True  # with copies, servers may lose everything, one at a time
    short = ("-m", "2", "-M")  # a server that has no room left: it refuses
    options = ()

    def __init__(self, copies, directory):
        self.copies, self.directory = copies, directory
        self.serial = 0

    def fresh(self):
        self.serial += 1
        return self.serial

    def command(self, random, worker):
        raise NotImplementedError

    def ended(self, op):
        pass

    def last(self):
        return self.heal()

    def heal(self):
        return []

    def check(self, ops):
        raise NotImplementedError
