from __future__ import annotations

import threading
import weakref

from ddpdoctor.watch.heartbeat import _look_at


class Wrapper:
    pass


def test_a_look_at_a_thread_keeps_nothing_of_it_alive() -> None:
    held: list[weakref.ref[Wrapper]] = []
    is_held, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        wrapper = Wrapper()
        held.append(weakref.ref(wrapper))
        is_held.set()
        may_end.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert is_held.wait(60)
    look = _look_at(thread.ident or 0)
    may_end.set()
    thread.join(60)
    assert look is not None
    assert look.place is not None
    assert look.place[2].endswith("hold")
    assert held[0]() is None
