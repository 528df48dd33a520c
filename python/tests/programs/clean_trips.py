"""Each trip of a robot refers to the one before, and lets go of the one before that."""

from linked_trips import Robot, main
from small import EPOCHS


class Forgetful(Robot):
    def next_trip(self, last):
        last.before = None
        return super().next_trip(last)


main(Forgetful(), 2 * EPOCHS)
