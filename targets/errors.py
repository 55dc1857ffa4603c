"""The root of the tree of errors (stand-in)."""


class TilesimError(Exception):
    """A refusal or a fault that says what, where, what was got, the limit and the remedy."""

    def __init__(self, what: str, *, where: str = "", got: object = "", limit: object = "", remedy: str = ""):
        self.what, self.where, self.got, self.limit, self.remedy = what, where, str(got), str(limit), remedy
        super().__init__(what)

    def fields(self) -> dict[str, str]:
        """The parts of the message by name."""
        return {key: getattr(self, key) for key in ("what", "where", "got", "limit", "remedy")}

    def __str__(self) -> str:
        parts = [self.where, f"got {self.got}" if self.got else "", f"limit {self.limit}" if self.limit else ""]
        middle = ", ".join(part for part in parts if part)
        text = f"{self.what}: {middle}" if middle else self.what
        return f"{text}; {self.remedy}" if self.remedy else text


class TargetError(TilesimError):
    """A target that cannot be used."""
