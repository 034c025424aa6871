class Shelf:
    def __init__(self):
        self.kept = {}

    def put(self):
        def keep(thing):
            self.kept[thing.__name__] = thing
            return thing

        return keep

    def take(self, wanted):
        wanted = dict(wanted)
        kind = wanted.pop("kind")
        found = self.kept.get(kind)
        if found is None:
            raise KeyError(f"{kind} is on no shelf")
        return found(**wanted)


NETS = Shelf()
