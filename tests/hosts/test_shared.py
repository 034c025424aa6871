"""Doctors that meet in a folder which their hosts share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ddpdoctor.hosts import shared
from ddpdoctor.hosts.messages import MOST, Meeting
from ddpdoctor.hosts.post import Post, ThreadedPost
from ddpdoctor.hosts.shared import EitherPost, FolderPost
from tests.hosts.test_company import meeting
from tests.hosts.test_post import until


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "_LOOK", 0.01)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., FolderPost]]:
    posts = []

    def make(*, first: bool, where: Meeting | None = None) -> FolderPost:
        posts.append(FolderPost(tmp_path, where or meeting(), first=first))
        return posts[-1]

    yield make
    for post in posts:
        post.close()


def hears(post: Post, *expected: bytes) -> list[bytes]:
    """What has come until all that is expected has."""
    heard: list[bytes] = []
    until(lambda: heard.extend(post.taken()) is None and {*expected} <= {*heard})
    return heard


def test_what_each_says_comes_once_and_in_order_also_to_who_comes_late(opened) -> None:
    first = opened(first=True)
    first.send(b"one")
    early = opened(first=False)
    assert hears(early, b"one") == [b"", b"one"]
    first.send(b"two")
    early.send(b"from the early one")
    late = opened(first=False)
    late.send(b"x" * MOST)
    assert hears(early, b"two") == [b"two"]
    assert hears(late, b"two") == [b"", b"one", b"two"]
    heard = hears(first, b"from the early one", b"x" * MOST)
    assert sorted(heard)[:2] == [b"", b""]
    assert len(heard) == 4


def test_doctors_of_two_meetings_do_not_hear_each_other(opened) -> None:
    first, member = opened(first=True), opened(first=False)
    stranger = opened(first=False, where=meeting("another-run"))
    first.send(b"hello")
    hears(member, b"hello")
    assert stranger.taken() == []


def test_a_message_that_is_only_half_there_is_waited_for(opened, tmp_path: Path) -> None:
    first = opened(first=True)
    member = opened(first=False)
    member.send(b"whole")
    hears(first, b"whole")
    (file,) = (tmp_path / "doctors").rglob("member-*")
    for part in (b"\x04\0", b"\0\0te", b"xt"):
        assert first.taken() == []
        with file.open("ab") as log:
            log.write(part)
    assert hears(first, b"text") == [b"text"]


def test_a_file_that_has_grown_large_is_begun_anew_and_all_is_to_be_told_again(
    opened, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shared, "_LARGEST", 100)
    first, member = opened(first=True), opened(first=False)
    member.send(b"a" * 50)
    hears(first, b"a" * 50)
    assert not member.is_full
    member.send(b"b" * 200)
    until(lambda: member.is_full)
    member.send(b"anew")
    hears(first, b"anew")
    assert len([*(tmp_path / "doctors").rglob("member-*")]) == 1


def test_what_was_said_last_is_written_before_a_doctor_goes(opened, tmp_path: Path) -> None:
    first, member = opened(first=True), opened(first=False)
    said = [b"%d" % number for number in range(1000)]
    for message in said:
        first.send(message)
    first.close()
    (file,) = (tmp_path / "doctors").rglob("first-*")
    assert file.read_bytes().endswith(said[-1])  # at once: nothing of it lives any longer
    assert hears(member, said[-1])[1:] == said


class Silent(ThreadedPost):
    """A store where nobody is, or that says this."""

    said: tuple[bytes, ...] = ()
    closed = False

    def __init__(self) -> None:
        super().__init__()
        for each in self.said:
            self._received.put(each)

    def close(self) -> None:
        self.closed = True

    def _carry_out(self) -> None: ...

    def _carry_in(self) -> None: ...


class Speaking(Silent):
    said = (b"", b"by the store")


def test_a_member_takes_the_folder_where_the_first_is_and_starts_no_store(opened) -> None:
    stores: list[Silent] = []

    def store() -> Silent:
        stores.append(Silent())
        return stores[-1]

    either = EitherPost(opened(first=False), store, first=False)
    first = EitherPost(opened(first=True), store, first=True)
    first.send(b"hello")
    hears(either, b"hello")
    either.send(b"here")
    hears(first, b"here")
    assert len(stores) == 1  # of the first


def test_a_member_that_does_not_see_the_folder_of_the_first_takes_the_store(
    opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "_TO_SEE", 0.1)
    folder, store = opened(first=False), Speaking()
    either = EitherPost(folder, lambda: store, first=False)
    assert hears(either, b"by the store") == [b"", b"by the store"]
    until(lambda: not any(thread.name == "post" for thread in threading.enumerate()))
