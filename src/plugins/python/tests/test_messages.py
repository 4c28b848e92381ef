"""Messages between ranks of torch: two ranks in one process, with a group and a store of the test."""

import datetime
import struct
import sys
import threading
import time
import unittest

import torch
import torch.distributed as dist

import longhaul
from longhaul import _torch_messages, _torch_works
from longhaul._native import ffi, lib

CANCELED = longhaul.Canceled(lib.LH_ECANCELED, "closed")
BIG = 100000  # elements: not in the header


class Ranks:
    """A group of which only the rank, the size and the errors are used."""

    def __init__(self, rank):
        self.rank, self.size = rank, 2

    failed = None

    def error(self, rank):
        return self.failed


class SlowStore:
    def __init__(self, store):
        self.store, self.entered, self.go = store, threading.Event(), threading.Event()

    def clone(self):
        self.entered.set()
        self.go.wait(30)
        return self.store


class Messages(unittest.TestCase):
    def setUp(self):
        self.endpoint = _torch_works.Endpoint("udp:127.0.0.1")
        self.store = dist.HashStore()
        self.store.set_timeout(datetime.timedelta(seconds=5))
        self.ranks = [self.create(rank) for rank in range(2)]

    def create(self, rank, store=None, **settings):
        return _torch_messages.Messages(Ranks(rank), store or self.store, self.endpoint, settings)

    def tearDown(self):
        for each in self.ranks:
            each.close(CANCELED)
        self.endpoint.close()

    def send(self, tensor, rank=0, tag=0, seconds=20.0):
        work = _torch_works.Work([tensor], True)
        self.ranks[rank].send(tensor, 1 - rank, tag, work, seconds)
        return work

    def recv(self, tensor, rank=1, tag=0, seconds=20.0):
        work = _torch_works.Work([tensor], True)
        self.ranks[rank].recv(tensor, 1 - rank, tag, work, seconds, None)
        return work

    def wait(self, work):
        return work.wait(datetime.timedelta(seconds=20))

    def connect(self):
        works = self.send(torch.ones(1)), self.recv(torch.zeros(1))
        for work in works:
            self.wait(work)

    def send_raw(self, content):
        """Sends a header that no rank of this release sends."""
        sender = self.ranks[0]
        with sender._lock:
            parts = [(ffi.from_buffer(content), len(content))]
            sender._post(sender._peers[1], lib.lh_sendmsg, parts, 0, None, content)

    def fails(self, work, name, text=""):
        with self.assertRaisesRegex(longhaul.LonghaulError, text) as caught:
            self.wait(work)
        self.assertEqual(caught.exception.name, name, caught.exception)

    def test_a_header_that_exceeds_its_message(self):
        self.connect()
        into = torch.zeros(BIG)
        work = self.recv(into)
        self.send_raw(bytearray(struct.pack("<QQq", 4 * BIG, 0, 0) + b"abcd"))
        self.fails(work, "LH_EPROTOCOL", "invalid message of 28 bytes")
        self.assertFalse(into.any())

    def test_a_message_that_is_shorter_than_a_header(self):
        self.connect()
        work = self.recv(torch.zeros(1))
        self.send_raw(bytearray(5))
        self.fails(work, "LH_EPROTOCOL", "invalid message of 5 bytes")

    def test_a_message_of_any_size_allocates_nothing(self):
        self.connect()
        work = self.recv(torch.zeros(BIG), seconds=1)
        self.send_raw(bytearray(struct.pack("<QQq", 1 << 60, 1000, 0)))
        self.fails(work, "LH_ETRUNCATED", f"{1 << 60} bytes")
        self.assertEqual(len(self.ranks[1]._payloads), 1)
        end = time.monotonic() + 20
        while self.ranks[1]._payloads and time.monotonic() < end:
            time.sleep(0.01)
        self.assertEqual(self.ranks[1]._payloads, {})

    def test_tensors_of_different_sizes_fail_at_both_ranks(self):
        for sent, received in ((BIG, BIG + 1), (BIG + 1, BIG), (BIG, 1)):
            send, receive = self.send(torch.ones(sent)), self.recv(torch.zeros(received))
            self.fails(send, "LH_ETRUNCATED")
            self.fails(receive, "LH_ETRUNCATED", f"{4 * sent} bytes.*{4 * received} bytes")
        self.connect()

    def test_messages_without_a_receive_are_bounded(self):
        limit, _torch_messages._ARRIVED_MAX = _torch_messages._ARRIVED_MAX, 8
        self.addCleanup(setattr, _torch_messages, "_ARRIVED_MAX", limit)
        sends = [self.send(torch.full((2,), float(i)), tag=1) for i in range(20)]
        sends.append(self.send(torch.ones(2), tag=2))
        self.fails(self.recv(torch.zeros(2), tag=2, seconds=1), "LH_ETIMEDOUT", "8 messages.*the limit")
        self.assertEqual(len(self.ranks[1]._arrived), 8)
        for i in range(20):
            self.wait(self.recv(into := torch.zeros(2), tag=1))
            self.assertEqual(into.tolist(), [i, i])
        self.wait(self.recv(torch.zeros(2), tag=2))
        for send in sends:
            self.wait(send)

    def test_a_payload_has_the_time_limit_of_its_receive(self):
        self.ranks = [self.create(rank, rate_bps=4_000_000) for rank in range(2)]
        start = time.monotonic()
        send, receive = self.send(torch.ones(2_000_000)), self.recv(torch.zeros(2_000_000), seconds=1)
        self.fails(receive, "LH_ETIMEDOUT")
        self.fails(send, "LH_ECANCELED")
        self.assertLess(time.monotonic() - start, 8)  # the message takes 16 s

    def test_the_last_message_of_a_rank_that_leaves(self):
        self.connect()
        receiver, into = self.ranks[1], torch.zeros(1)
        receive = self.recv(into)
        with receiver._lock:  # its entry is not taken meanwhile
            send = self.send(torch.ones(1))
            end = time.monotonic() + 20
            while not receiver._peers[0].listening.has_succeeded() and time.monotonic() < end:
                time.sleep(0.001)
            receiver._group.failed = longhaul.RankFailed(lib.LH_ECLOSED, "rank 0: left", 0)
            receiver._checked = 0.0
            receiver._watch()
        self.wait(receive)
        self.wait(send)
        self.assertEqual(into.item(), 1)

    def test_a_send_that_is_late_is_not_delivered(self):
        send = self.send(torch.ones(BIG), seconds=0.3)
        self.fails(send, "LH_ETIMEDOUT")
        self.fails(self.recv(torch.zeros(BIG), seconds=0.5), "LH_ETIMEDOUT")

    def test_an_invalid_address_in_the_store(self):
        self.store.set("longhaul/mail/1", b"\xff")
        self.fails(self.send(torch.ones(1)), "LH_EPROTOCOL", "invalid address in the store")

    def test_a_watcher_that_raises_ends_all_works(self):
        self.connect()
        receive = self.recv(torch.zeros(1))
        self.ranks[1]._end_late = lambda now: 1 / 0
        self.fails(receive, "LH_ESTATE", "ZeroDivisionError")
        with self.assertRaisesRegex(longhaul.LonghaulError, "ZeroDivisionError"):
            self.recv(torch.zeros(1))

    def close_after(self, drain):
        send = self.send(torch.ones(BIG))
        closing = threading.Thread(target=self.ranks[0].close, args=(CANCELED, drain))
        closing.start()
        closing.join(0.3)
        self.assertEqual(closing.is_alive(), drain)
        with self.assertRaises(longhaul.Canceled):
            self.send(torch.ones(1))
        receive = self.recv(into := torch.zeros(BIG), seconds=2)
        return send, receive, into, closing

    def test_close_with_drain_waits_for_sends(self):
        send, receive, into, closing = self.close_after(True)
        self.wait(send)
        self.wait(receive)
        self.assertTrue(into.all())
        closing.join(20)
        self.assertFalse(closing.is_alive())

    def test_close_without_drain_cancels_sends(self):
        send, receive, _, _ = self.close_after(False)
        self.fails(send, "LH_ECANCELED")
        with self.assertRaises(longhaul.LonghaulError):
            self.wait(receive)

    def test_close_while_the_store_is_slow(self):
        store, ends = SlowStore(self.store), []
        self.ranks[1] = self.create(1, store)

        def receives():
            try:
                self.wait(self.recv(torch.zeros(1)))
            except longhaul.LonghaulError as error:
                ends.append(error)

        thread = threading.Thread(target=receives)
        thread.start()
        store.entered.wait(20)
        self.ranks[1].close(CANCELED)  # returns at once
        self.assertTrue(thread.is_alive())
        store.go.set()
        thread.join(20)
        self.assertEqual(ends, [CANCELED])

    def test_nothing_is_kept(self):
        for i in range(3000):
            self.send(torch.ones(1))
            receive = self.recv(torch.zeros(1))
            if i % 100 == 0:
                self.wait(receive)
        self.wait(receive)
        for each in self.ranks:
            self.assertEqual((len(each._receives), len(each._payloads), len(each._arrived)), (0, 0, 0))
        end = time.monotonic() + 20
        while self.ranks[0]._sends and time.monotonic() < end:
            time.sleep(0.01)
        self.assertEqual((self.ranks[0]._sends, len(self.ranks[0]._peers[1].waiting)), ({}, 0))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
