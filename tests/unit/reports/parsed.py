"""A Perfetto trace read back the way its reader does it: tracks, slices on stacks, arrows, counters."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages


@dataclass
class Slice:
    """A slice with its place and facts."""

    process: str
    thread: str
    name: str
    start: int
    facts: dict[str, int | str]
    leaving: tuple[int, ...]
    arriving: tuple[int, ...]
    end: int = -1


@dataclass
class Parsed:
    """What a file holds; slices in the order in which they begin."""

    slices: list[Slice] = field(default_factory=list)
    counters: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    threads: list[tuple[str, str]] = field(default_factory=list)

    def lanes(self) -> list[Slice]:
        """Slices of engines."""
        return [s for s in self.slices if s.process]

    def arrows(self) -> list[tuple[Slice, Slice]]:
        """From which slice to which an arrow leads; each number leaves one and arrives at one."""
        begins = {number: s for s in self.slices for number in s.leaving}
        ends = {number: s for s in self.slices for number in s.arriving}
        assert begins.keys() == ends.keys()
        assert len(begins) == sum(len(s.leaving) for s in self.slices)
        return [(begins[number], ends[number]) for number in sorted(begins)]


def parse(path: Path) -> Parsed:
    """Read a file; slices that are not well nested on their track fail."""
    trace = messages.Trace.FromString(path.read_bytes())
    return _Reader().read(trace)


class _Reader:
    def __init__(self) -> None:
        self.parsed = Parsed()
        self.texts: dict[tuple[str, int], str] = {}
        self.processes: dict[int, str] = {}
        self.tracks: dict[int, tuple[str, str]] = {}
        self.stacks: dict[int, list[Slice]] = {}

    def read(self, trace: Any) -> Parsed:
        events = []
        for packet in trace.packet:
            assert packet.trusted_packet_sequence_id == 1
            self._learn(packet.interned_data)
            if packet.HasField("track_descriptor"):
                self._track(packet.track_descriptor)
            elif packet.HasField("track_event"):
                assert packet.sequence_flags == messages.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
                events.append((packet.timestamp, packet.track_event))
        assert trace.packet[0].sequence_flags == messages.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        for time, event in sorted(events, key=lambda pair: pair[0]):  # the reader sorts, and keeps ties
            self._event(time, event)
        assert not any(self.stacks.values())
        return self.parsed

    def _learn(self, data: Any) -> None:
        for table in ("event_names", "debug_annotation_names", "debug_annotation_string_values"):
            for entry in getattr(data, table):
                text = entry.str.decode() if table.endswith("values") else entry.name
                assert (table, entry.iid) not in self.texts
                self.texts[table, entry.iid] = text

    def _track(self, track: Any) -> None:
        assert track.uuid not in self.tracks
        if track.HasField("process"):
            self.processes[track.process.pid] = track.process.process_name
            place = (track.process.process_name, "")
        elif track.HasField("thread"):
            place = (self.processes[track.thread.pid], track.thread.thread_name)
            self.parsed.threads.append(place)
        else:
            place = ("", track.name)
        self.tracks[track.uuid] = place
        if track.HasField("counter"):
            self.parsed.counters[track.name] = []
            self.parsed.units[track.name] = track.counter.unit_name

    def _event(self, time: int, event: Any) -> None:
        place = self.tracks[event.track_uuid]
        if event.type == messages.TrackEvent.TYPE_COUNTER:
            self.parsed.counters[place[1]].append((time, event.double_counter_value))
        elif event.type == messages.TrackEvent.TYPE_SLICE_BEGIN:
            name = self.texts["event_names", event.name_iid]
            arrows = (tuple(event.flow_ids), tuple(event.terminating_flow_ids))
            made = Slice(*place, name, time, dict(self._facts(event)), *arrows)
            self.parsed.slices.append(made)
            self.stacks.setdefault(event.track_uuid, []).append(made)
            assert len(self.stacks[event.track_uuid]) == 1, "slices of a thread never lie in one another"
        else:
            self.stacks[event.track_uuid].pop().end = time

    def _facts(self, event: Any) -> Iterator[tuple[str, int | str]]:
        for note in event.debug_annotations:
            name = self.texts["debug_annotation_names", note.name_iid]
            if note.HasField("int_value"):
                yield name, note.int_value
            else:
                yield name, self.texts["debug_annotation_string_values", note.string_value_iid]
