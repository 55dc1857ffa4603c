"""Packets of a Perfetto trace: tracks, slices and counters, each text written once and then referred to by number.

The messages are those of perfetto/trace/perfetto_trace.proto, by the `perfetto` package of PyPI.
"""

from collections.abc import Iterable, Mapping
from typing import IO, Any

from targets.errors import TilesimError

_CHUNK = 4000  # packets that are held before they are written
_SEQUENCE = 1


def messages() -> Any:
    """The module of the generated messages.

    Raises:
        TilesimError: the extra `perfetto` is not installed.
    """
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2  # noqa: PLC0415 - an optional dependency
    except ImportError as error:
        raise TilesimError(
            "a Perfetto trace needs a package that is not installed",
            got=str(error),
            remedy="pip install 'tilesim[perfetto]' (from a checkout: pip install -e '.[perfetto]')",
        ) from error
    return perfetto_trace_pb2


class PacketWriter:
    """Writes the packets of one sequence to a file, some thousand at a time; `close` writes the last."""

    def __init__(self, file: IO[bytes]):
        """A writer to an open file; needs the extra `perfetto`."""
        self._file = file
        self._messages = messages()
        self._trace = self._messages.Trace()
        self._numbers: dict[str, dict[str, int]] = {}
        self._packet().sequence_flags = self._messages.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED

    def _packet(self, time_ns: int | None = None) -> Any:
        if len(self._trace.packet) >= _CHUNK:
            self.close()
        packet = self._trace.packet.add(trusted_packet_sequence_id=_SEQUENCE)
        if time_ns is not None:
            packet.timestamp = time_ns
            packet.sequence_flags = self._messages.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        return packet

    def close(self) -> None:
        """Write what is held."""
        self._file.write(self._trace.SerializeToString())
        self._trace = self._messages.Trace()

    def track(self, uuid: int, name: str, parent: int = 0, description: str = "", rank: int = 0) -> None:
        """A track by its name, below another or at the top; among its siblings the lowest rank comes first."""
        track = self._packet().track_descriptor
        track.uuid, track.name, track.sibling_order_rank = uuid, name, rank
        track.child_ordering = self._messages.TrackDescriptor.EXPLICIT
        if parent:
            track.parent_uuid = parent
        if description:
            track.description = description

    def process(self, uuid: int, pid: int, name: str) -> None:
        """A process."""
        track = self._packet().track_descriptor
        track.uuid = uuid
        track.process.pid, track.process.process_name = pid, name
        track.child_ordering = self._messages.TrackDescriptor.EXPLICIT

    def thread(self, uuid: int, process: tuple[int, int], tid: int, name: str) -> None:
        """A thread of a process, which is given as (uuid, pid)."""
        track = self._packet().track_descriptor
        track.uuid, track.parent_uuid, track.sibling_order_rank = uuid, process[0], tid
        track.thread.pid, track.thread.tid, track.thread.thread_name = process[1], tid, name

    def counter_track(self, uuid: int, name: str, unit: str, parent: int) -> None:
        """A track of numbers with a unit."""
        track = self._packet().track_descriptor
        track.uuid, track.name, track.parent_uuid = uuid, name, parent
        track.counter.unit_name = unit

    def begin(
        self,
        time_ns: int,
        track: int,
        name: str,
        facts: Mapping[str, int | str],
        flows: tuple[Iterable[int], Iterable[int]] = ((), ()),
    ) -> None:
        """A slice begins; flows are those that leave it and those that end in it."""
        packet = self._packet(time_ns)
        event = packet.track_event
        event.type = self._messages.TrackEvent.TYPE_SLICE_BEGIN
        event.track_uuid = track
        event.name_iid = self._number(packet, "event_names", name)
        event.flow_ids.extend(flows[0])
        event.terminating_flow_ids.extend(flows[1])
        for key, value in facts.items():
            note = event.debug_annotations.add(name_iid=self._number(packet, "debug_annotation_names", key))
            if isinstance(value, int):
                note.int_value = value
            else:
                note.string_value_iid = self._number(packet, "debug_annotation_string_values", value)

    def end(self, time_ns: int, track: int) -> None:
        """The slice that began last on a track ends."""
        event = self._packet(time_ns).track_event
        event.type = self._messages.TrackEvent.TYPE_SLICE_END
        event.track_uuid = track

    def count(self, time_ns: int, track: int, value: float) -> None:
        """A counter has a value from now on."""
        event = self._packet(time_ns).track_event
        event.type = self._messages.TrackEvent.TYPE_COUNTER
        event.track_uuid = track
        event.double_counter_value = value

    def _number(self, packet: Any, table: str, text: str) -> int:
        """The number of a text, which the packet defines when it is new."""
        known = self._numbers.setdefault(table, {})
        if text not in known:
            known[text] = len(known) + 1
            encoded = text.encode() if table == "debug_annotation_string_values" else None
            entry = getattr(packet.interned_data, table).add(iid=known[text])
            if encoded is None:
                entry.name = text
            else:
                entry.str = encoded
        return known[text]
