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
        return self.kept[wanted.pop("kind")](**wanted)


NETS, HOOKS = Shelf(), Shelf()
