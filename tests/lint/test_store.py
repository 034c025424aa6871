"""What an object holds is what was kept under its name, whatever was taken back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ddpdoctor.lint.engine.interpreter.store import Kept, Store
from ddpdoctor.lint.engine.interpreter.values import Const, Ref, Value

OWNERS = [Ref(1), Ref(2), -1, "library"]
KEYS = st.tuples(st.sampled_from(OWNERS), st.sampled_from("abc"))
DEEDS = st.one_of(
    st.tuples(st.sampled_from(["put", "begin"]), KEYS, st.integers()),
    st.just(("open", None, 0)),
    st.just(("close", None, 0)),
)


def scanned(store: Store, owner: object) -> list[tuple[str, Value]]:
    found = {name: value for (of, name), value in store.below.items() if of == owner}
    found.update({name: value for (of, name), value in store.now.items() if of == owner})
    return list(found.items())


@given(st.dictionaries(KEYS, st.integers()), st.lists(DEEDS, max_size=40))
def test_of_an_object_there_is_what_a_look_at_everything_finds_in_the_same_order(below, deeds):  # type: ignore[no-untyped-def]
    kept = Kept()
    for key, number in below.items():
        kept[key] = Value(Const(number))
    store = Store(kept)
    for what, key, number in deeds:
        if what == "open":
            store.open()
        elif what == "close" and store.depth:
            store.close()
        elif what in ("put", "begin"):
            getattr(store, what)(key, Value(Const(number)))
        for owner in OWNERS:
            assert list(store.of(owner).items()) == scanned(store, owner)
