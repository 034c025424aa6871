CFG = dict(seed=7, model=dict(type="Generator", z=4, out=2), optim=dict(lr=3e-3), iters=60)
