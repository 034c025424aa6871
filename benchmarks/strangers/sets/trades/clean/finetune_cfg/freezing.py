def set_trainable(module, flag):
    for p in module.parameters():
        p.requires_grad_(flag)


class ThawSchedule:
    """Starts with a frozen backbone and releases parts of it by epoch."""

    def __init__(self, backbone, plan):
        self.backbone = backbone
        self.plan = dict(plan)
        set_trainable(backbone, False)

    def step(self, epoch):
        released = []
        for name, start in self.plan.items():
            if epoch == start:
                set_trainable(self.backbone.get_submodule(name), True)
                released.append(name)
        return released
