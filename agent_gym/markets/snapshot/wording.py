"""Posts in words: who says it, how strongly, and which way; the wording varies, the band does not.

The strength of the words encodes the band of the evidence, so that whoever reads can learn it.
There are two phrase books; models that learned from one can be tried on the other.
"""

from __future__ import annotations

from agent_gym.markets.snapshot.types import Author, Post, Snapshot

WORDINGS = 4

_YES = {
    "common": {
        3: (
            "It is settled: {topic} will happen",
            "Confirmed by every source, {topic} is coming",
            "No doubt left, {topic} goes through",
            "Documents prove it: {topic} will happen",
        ),
        2: (
            "Several sources say {topic} will happen",
            "{topic} looks very likely now",
            "Insiders expect {topic}",
            "Strong signs for {topic} today",
        ),
        1: (
            "A small hint that {topic} could happen",
            "{topic} seems slightly more likely",
            "One remark speaks for {topic}",
            "Mild support for {topic}",
        ),
    },
    "other": {
        3: (
            "Signed and sealed, {topic} is a fact",
            "Everybody in the room says yes to {topic}",
            "{topic} is as good as done",
            "Proof is out that {topic} comes true",
        ),
        2: (
            "Good chances for {topic}, people close to it say",
            "{topic} is gaining real ground",
            "A serious report backs {topic}",
            "Most observers now count on {topic}",
        ),
        1: (
            "A faint sign in favour of {topic}",
            "{topic} a touch likelier than before",
            "Somebody half agrees to {topic}",
            "A little wind behind {topic}",
        ),
    },
}
_NO = {
    "common": {
        3: (
            "It is settled: {topic} will not happen",
            "Confirmed by every source, {topic} is off",
            "No doubt left, {topic} fails",
            "Documents prove it: {topic} is dead",
        ),
        2: (
            "Several sources say {topic} will not happen",
            "{topic} looks very unlikely now",
            "Insiders have given up on {topic}",
            "Strong signs against {topic} today",
        ),
        1: (
            "A small hint that {topic} could fail",
            "{topic} seems slightly less likely",
            "One remark speaks against {topic}",
            "Mild doubts about {topic}",
        ),
    },
    "other": {
        3: (
            "Signed and sealed, {topic} is cancelled",
            "Everybody in the room says no to {topic}",
            "{topic} is as good as buried",
            "Proof is out that {topic} never comes",
        ),
        2: (
            "Bad chances for {topic}, people close to it say",
            "{topic} is losing real ground",
            "A serious report denies {topic}",
            "Most observers now count {topic} out",
        ),
        1: (
            "A faint sign to the harm of {topic}",
            "{topic} a touch less likely than before",
            "Somebody half objects to {topic}",
            "A little wind against {topic}",
        ),
    },
}
_UP = {
    "common": {
        3: (
            "{topic} is about to soar, the deal is confirmed",
            "Huge demand for {topic}, a surge",
            "{topic} will jump: the best news in years",
            "All in on {topic}, it can only rise",
        ),
        2: (
            "{topic} should rise on strong orders",
            "Good news for {topic}: buyers return",
            "Analysts see {topic} clearly higher",
            "{topic} is gaining partners",
        ),
        1: (
            "{topic} may tick up a little",
            "A slightly better mood around {topic}",
            "Some small buyers in {topic}",
            "{topic} looks a bit firmer",
        ),
    },
    "other": {
        3: (
            "Nothing stops {topic} now, straight up",
            "A windfall for {topic}, beyond all hopes",
            "{topic} explodes upward on certain news",
            "The sky is open for {topic}",
        ),
        2: (
            "{topic} wins a large customer",
            "Solid figures lift {topic}",
            "Funds are adding {topic}",
            "Upgrades for {topic} this morning",
        ),
        1: (
            "A friendly word about {topic}",
            "{topic} is holding up rather well",
            "A shade more interest in {topic}",
            "{topic} edges upward in talk",
        ),
    },
}
_DOWN = {
    "common": {
        3: (
            "{topic} is about to collapse, fraud is confirmed",
            "Panic about {topic}, a crash",
            "{topic} will plunge: the worst news in years",
            "Out of {topic}, it can only fall",
        ),
        2: (
            "{topic} should fall on weak orders",
            "Bad news for {topic}: sellers return",
            "Analysts see {topic} clearly lower",
            "{topic} is losing partners",
        ),
        1: (
            "{topic} may tick down a little",
            "A slightly worse mood around {topic}",
            "Some small sellers in {topic}",
            "{topic} looks a bit softer",
        ),
    },
    "other": {
        3: (
            "Nothing holds {topic} now, straight down",
            "A disaster for {topic}, beyond all fears",
            "{topic} implodes on certain news",
            "The floor is gone under {topic}",
        ),
        2: (
            "{topic} loses a large customer",
            "Poor figures weigh on {topic}",
            "Funds are shedding {topic}",
            "Downgrades for {topic} this morning",
        ),
        1: (
            "A sour word about {topic}",
            "{topic} is holding up rather badly",
            "A shade less interest in {topic}",
            "{topic} edges downward in talk",
        ),
    },
}
_NEUTRAL = {
    "common": (
        "Nothing new about {topic}",
        "{topic} is being discussed",
        "Mixed remarks on {topic}",
        "Waiting for facts on {topic}",
    ),
    "other": (
        "Silence around {topic}",
        "{topic} came up, without result",
        "Views on {topic} cancel out",
        "No facts on {topic} yet",
    ),
}
_OPENING = {"report": "", "breaking": "BREAKING: ", "rumour": "Rumour: "}


def write(snapshot: Snapshot, post: Post) -> str:
    """Return a post as its readers see it, without its author."""
    topics = {one.id: one.topic for one in snapshot.predictions}
    topic = topics.get(post.market)
    book = snapshot.config.wordings
    if topic is None:
        topic = next(one.ticker for one in snapshot.perpetuals if one.id == post.market)
        rising, falling = _UP[book], _DOWN[book]
    else:
        rising, falling = _YES[book], _NO[book]
    if post.band == 0:
        phrases = _NEUTRAL[book]
    else:
        phrases = rising[post.band] if post.band > 0 else falling[-post.band]
    said = phrases[post.wording % WORDINGS].format(topic=topic)
    opening = _OPENING[post.kind]
    return f"{opening}{said}." if opening else f"{said[:1].upper()}{said[1:]}."


def sign(author: Author) -> str:
    """Return who wrote it, with how often this author is right."""
    return f"{author.name} (right {author.reliability:.0%} of the time)"
