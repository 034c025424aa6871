"""`ddpdoctor config`: a launch file for what is here, tried by starting it where it can be started.

`plan` turns the facts about the machine into what the file must say, `files/` has one module per
launcher that writes it, and `trial` starts it with a script of ours that talks to every rank.
Imports no torch.
"""
