"""`ddpdoctor probe`: whether the ranks can really talk, and how fast.

`rank` runs on every rank and measures, one module per question (`correctness`, `bandwidth`,
`links`, `pace`, `clocks`); `local` starts ranks on this machine, and under a launcher each process
is a rank already. `judge` and `against` turn what was measured into findings: pure functions.
Only what runs on a rank imports torch.
"""
