"""Heights of the tide between two known turns, by the rule of cosines."""
import math


class Turn:
    """A high or low water: when, in hours, and how high, in metres."""

    def __init__(self, hours, metres):
        self.hours = hours
        self.metres = metres


def height_at(before, after, hours):
    """The height at a time between two turns."""
    part = (hours - before.hours) / (after.hours - before.hours)
    return before.metres + (after.metres - before.metres) * (1 - math.cos(part * math.pi)) / 2


def landing_is_possible(height, swell):
    """The boat needs 1.5 m over the sill of the landing, and a swell below two metres."""
    return height >= 1.5 and swell < 2
