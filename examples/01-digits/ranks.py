"""The ranks of a gang and the one thing they do together: add up an array. Plain sockets, nothing to install.

A star: rank 0 listens, every other rank connects to it. To add up, the others send their arrays to rank 0, which adds
them in the order of the ranks and sends the sum back. So the sum has the same bits on every rank and in every run.
"""

from __future__ import annotations

import hashlib
import socket
import struct
import time

import numpy as np

HELLO = struct.Struct("!16sI")  # which gang, which rank
LENGTH = struct.Struct("!Q")


class GangError(Exception):
    """The ranks did not find each other, or lost each other. The message says which rank to look at."""


class Ranks:
    """All the ranks of a gang, seen from one of them: `with Ranks(...) as ranks: total = ranks.sum(mine)`.

    `address` and `port` are where rank 0 listens; `gang` is a text that all ranks of this gang share and no other gang
    has; `patience` is how many seconds a rank waits for another one, at the start and later.
    """

    def __init__(self, rank: int, size: int, address: str, port: int, gang: str, patience: float = 60) -> None:
        self.rank = rank
        self.size = size
        self._gang = hashlib.sha256(gang.encode()).digest()[:16]
        self._patience = patience
        self._peers: dict[int, socket.socket] = {}  # rank 0 has all the others here, the others have rank 0
        try:
            if size > 1 and rank == 0:
                self._wait_for_all(address, port)
            elif size > 1:
                self._peers[0] = self._find_rank_0(address, port)
        except BaseException:
            self.close()
            raise

    def sum(self, mine: np.ndarray) -> np.ndarray:
        """The sum of the arrays of all ranks; every rank must call this with an array of the same shape."""
        if self.rank != 0:
            self._send(0, mine)
            return self._receive(0, mine.shape)
        total = mine.astype(np.float64)
        for rank in range(1, self.size):
            total += self._receive(rank, mine.shape)
        for rank in range(1, self.size):
            self._send(rank, total)
        return total

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()
        self._peers = {}

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # How they find each other.

    def _wait_for_all(self, address: str, port: int) -> None:
        deadline = time.monotonic() + self._patience
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        try:
            door = socket.create_server((address, port), family=family, backlog=self.size)
        except OSError as error:
            raise GangError(f"Rank 0 can't listen at {address}:{port} ({error}). Choose another port: --port.") from error
        with door:
            while len(self._peers) < self.size - 1:
                missing = sorted(set(range(1, self.size)) - set(self._peers))
                left = deadline - time.monotonic()
                if left <= 0:
                    raise GangError(f"Rank 0 waited {self._patience:.0f} s for the other ranks; missing: {missing}.")
                door.settimeout(left)
                try:
                    caller, _ = door.accept()
                except TimeoutError:
                    continue
                rank = self._hello(caller)
                if rank in missing:
                    self._peers[rank] = caller
                else:
                    caller.close()  # not of this gang: a health check, a port scan, somebody else's run

    def _hello(self, caller: socket.socket) -> int | None:
        """The rank of the caller, or None if it isn't one of ours."""
        caller.settimeout(5)
        try:
            gang, rank = HELLO.unpack(receive_exactly(caller, HELLO.size))
        except OSError:
            return None
        self._prepare(caller)
        return rank if gang == self._gang else None

    def _find_rank_0(self, address: str, port: int) -> socket.socket:
        """A connection to rank 0. It may start later than this rank, so: try, wait a little, try again."""
        deadline = time.monotonic() + self._patience
        while True:
            try:
                peer = socket.create_connection((address, port), timeout=5)
                self._prepare(peer)
                peer.sendall(HELLO.pack(self._gang, self.rank))
                return peer
            except OSError as error:
                if time.monotonic() > deadline:
                    raise GangError(
                        f"Rank {self.rank} couldn't reach rank 0 at {address}:{port} for {self._patience:.0f} s ({error})."
                    ) from error
                time.sleep(0.2)

    def _prepare(self, peer: socket.socket) -> None:
        peer.settimeout(self._patience)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # small messages, sent at once

    # What they say to each other: a length, then that many bytes.

    def _send(self, rank: int, array: np.ndarray) -> None:
        data = np.ascontiguousarray(array, dtype=np.float64).tobytes()
        try:
            self._peers[rank].sendall(LENGTH.pack(len(data)) + data)
        except OSError as error:
            raise self._lost(rank, error) from error

    def _receive(self, rank: int, shape: tuple[int, ...]) -> np.ndarray:
        try:
            (length,) = LENGTH.unpack(receive_exactly(self._peers[rank], LENGTH.size))
            data = receive_exactly(self._peers[rank], length)
        except OSError as error:
            raise self._lost(rank, error) from error
        return np.frombuffer(data, dtype=np.float64).reshape(shape)

    def _lost(self, rank: int, error: OSError) -> GangError:
        if isinstance(error, TimeoutError):
            return GangError(f"Rank {self.rank} heard nothing from rank {rank} for {self._patience:.0f} s.")
        return GangError(f"Rank {self.rank} lost rank {rank} ({error}). Look at the log of rank {rank} for the reason.")


def receive_exactly(peer: socket.socket, count: int) -> bytes:
    """`count` bytes. A socket may give them in pieces; an empty piece means that the other side is gone."""
    data = bytearray()
    while len(data) < count:
        piece = peer.recv(min(count - len(data), 1 << 20))
        if not piece:
            raise ConnectionError("the connection was closed")
        data += piece
    return bytes(data)
