"""A torch that is imported in no time, for what `env` finds out beside it."""

__version__ = "2.13.0"


class version:
    cuda = hip = None


class cuda:
    @staticmethod
    def device_count() -> int:
        return 0
