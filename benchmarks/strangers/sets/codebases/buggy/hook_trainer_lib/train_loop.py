class HookBase:
    trainer = None

    def before_train(self):
        pass

    def after_train(self):
        pass

    def before_step(self):
        pass

    def after_step(self):
        pass


class TrainerBase:
    def __init__(self):
        self._hooks, self.iter, self.max_iter = [], 0, 0

    def register_hooks(self, hooks):
        for h in hooks:
            if h is not None:
                h.trainer = self
                self._hooks.append(h)

    def train(self):
        self._call("before_train")
        for self.iter in range(self.max_iter):
            self._call("before_step")
            self.run_step()
            self._call("after_step")
        self._call("after_train")

    def _call(self, name):
        for h in self._hooks:
            getattr(h, name)()
