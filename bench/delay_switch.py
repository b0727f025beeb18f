"""A switch that holds every frame for a while: network namespaces connected through TAP devices, for kernels without netem.

The namespaces see an ordinary eth0 each. A process of its own reads what they send, and writes it to the others when its time
has come. Frames may be large, so that few of them make a gigabit; the rate is limited by tc on each device.
"""

import fcntl
import heapq
import multiprocessing
import os
import select
import struct
import subprocess
import time

MTU = 32000
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000


def open_tap(name):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return fd


def relay(taps, delay):
    """Frames go to the device whose address they carry, or to all others; addresses are learned from the senders."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))  # a wire does not wait for a core
    except PermissionError:
        pass
    where, waiting, count = {}, [], 0
    while True:
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, _, targets, frame = heapq.heappop(waiting)
            for fd in targets:
                try:
                    os.write(fd, frame)
                except OSError:
                    pass  # the device is not up: the frame is lost, as on any wire
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        ready, _, _ = select.select(taps, [], [], timeout)
        for fd in ready:
            for _ in range(64):
                try:
                    frame = os.read(fd, MTU + 64)
                except BlockingIOError:
                    break
                where[frame[6:12]] = fd
                target = where.get(frame[0:6])
                targets = [target] if target is not None else [other for other in taps if other != fd]
                count += 1
                heapq.heappush(waiting, (time.monotonic() + delay, count, targets, frame))


class DelaySwitch:
    """connect() gives a namespace its eth0; start() lets frames through, `delay` seconds after they were sent."""

    def __init__(self, delay):
        self.delay, self.taps, self.process = delay, [], None

    def connect(self, namespace):
        name = f"penelope{len(self.taps)}"
        self.taps.append(open_tap(name))
        for command in (["link", "set", name, "mtu", str(MTU), "netns", namespace],
                        ["-n", namespace, "link", "set", name, "name", "eth0"]):
            subprocess.run(["ip", *command], check=True)

    def start(self):
        self.process = multiprocessing.Process(target=relay, args=(self.taps, self.delay), daemon=True)
        self.process.start()

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.join()
        for fd in self.taps:
            os.close(fd)
        self.taps = []
