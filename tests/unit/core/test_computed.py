import threading
from dataclasses import dataclass

from kernelskill.computed import computed

DEEP = 30.0
"""Seconds in which two threads that do not wait for one another are through."""


@dataclass(frozen=True)
class Tree:
    children: tuple["Tree", ...] = ()
    meeting: threading.Barrier | None = None

    @computed
    def kinds(self) -> frozenset[str]:
        """Names of the classes inside."""
        if self.meeting is not None:
            self.meeting.wait(timeout=DEEP)
        return frozenset({type(self).__name__}).union(*(child.kinds for child in self.children))


@dataclass(frozen=True)
class Other(Tree):
    @computed
    def kinds(self) -> frozenset[str]:
        return Tree.kinds.__get__(self, Other)


def test_a_value_is_computed_once_and_kept_in_the_object():
    calls = []

    class Counted:
        @computed
        def size(self) -> int:
            calls.append(self)
            return 7

    one, two = Counted(), Counted()
    assert (one.size, one.size, two.size) == (7, 7, 7)
    assert calls == [one, two]
    assert Tree.kinds.__doc__ == "Names of the classes inside."


def test_threads_that_walk_trees_of_mixed_nodes_do_not_wait_for_one_another():
    """Each is inside a node of one class when it comes to one of the other's: a lock a class would end this."""
    both = threading.Barrier(2)
    trees = [Tree((Other(),), both), Other((Tree(),), both)]
    found: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda tree=tree: found.append(sorted(tree.kinds)), daemon=True)
        for tree in trees
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEEP)
    assert found == [["Other", "Tree"]] * 2
