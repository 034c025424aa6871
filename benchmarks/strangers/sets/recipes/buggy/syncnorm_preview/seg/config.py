def get_cfg():
    return {"SEED": 3, "MODEL": {"CHANNELS": 8, "NORM": "NaiveSyncBN"}, "SOLVER": {"LR": 0.05, "ITERS": 16},
            "PREVIEW_PERIOD": 8}
