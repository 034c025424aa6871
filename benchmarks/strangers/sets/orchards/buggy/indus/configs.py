digits = dict(
    seed=9,
    epochs=4,
    batch=32,
    model=dict(type="mlp_bn", inputs=64, hidden=[96, 96], classes=10),
    optimizer=dict(lr=0.05, momentum=0.9),
    callbacks=[
        dict(type="WeightAverage", decay=0.98),
        dict(type="StepTimer"),
        dict(type="JsonLog", path="indus_out/log.jsonl"),
        dict(type="Echo"),
    ],
)
