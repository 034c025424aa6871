"""How a finding of `probe` is put together: by evidence, unless it is proven."""

from functools import partial

from ddpdoctor.environment.checks.finding import finding as of_machines

finding = partial(of_machines, certainty="evidence")
