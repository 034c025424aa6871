"""--require-multigpu: a session that was to run multi-GPU tests and ran none has failed."""

from __future__ import annotations

import pytest


class MultigpuRequirement:
    """Counts the multigpu tests that were executed; under xdist, in the controller."""

    def __init__(self) -> None:
        self.executed = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what was not skipped."""
        is_xfailed = hasattr(report, "wasxfail")
        if report.when == "call" and (not report.skipped or is_xfailed):
            self.executed += "multigpu" in report.keywords

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Turn a success, or a session without tests, into a failure."""
        well = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if not self.executed and session.exitstatus in well:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say so."""
        if not self.executed:
            terminalreporter.write_line(
                "ERROR: --require-multigpu was given, and no multigpu test was executed", red=True
            )
