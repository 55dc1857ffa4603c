"""Orders of axes."""


def channel_last(size: tuple[int, ...]) -> tuple[int, ...]:
    """[N, C, *rest] as [N, *rest, C]."""
    return (size[0], *size[2:], size[1])
