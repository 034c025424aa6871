MODELS = {}
SCHEDULES = {}


def register(table, name):
    def deco(obj):
        table[name] = obj
        return obj

    return deco
