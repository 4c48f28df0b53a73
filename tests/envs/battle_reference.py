"""The rules of a battle again, slowly: plain Python, one unit at a time, no arrays.

Written from the rules, not from the kernel, and used to check it.
"""

import math

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def splitmix(word):
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


class Body:
    """One unit."""

    def __init__(self, placed, row, side):
        self.kind, self.side = placed.kind, side
        self.x, self.y = float(row["x"]), float(row["y"])
        self.hp, self.shield = float(row["hp"]), float(row["shield"])
        self.cooldown, self.unhit = float(row["cooldown"]), float(row["unhit"])
        self.target, self.attacker = int(row["target"]), int(row["attacker"])

    @property
    def alive(self):
        return self.hp > 0

    def gap(self, other):
        return math.hypot(self.x - other.x, self.y - other.y)

    def reaches(self, other):
        return self.gap(other) <= self.kind.reach + self.kind.radius + other.kind.radius

    def notices(self, other):
        most = max(self.kind.scan, self.kind.reach)
        return self.gap(other) <= most + self.kind.radius + other.kind.radius


class Reference:
    """One environment, taken over from a snapshot."""

    def __init__(self, battle, snapshot):
        self.map = battle
        self.bodies = [
            Body(placed, row, "agent" if i < len(battle.agents) else "enemy")
            for i, (placed, row) in enumerate(zip(battle.units, snapshot.units, strict=True))
        ]
        self.stream, self.draws = int(snapshot.clock["stream"][0]), int(snapshot.clock["draws"][0])
        self.steps = int(snapshot.clock["steps"][0])

    def side(self, name):
        return [body for body in self.bodies if body.side == name]

    def any_alive(self, name):
        return any(body.alive for body in self.side(name))

    def draw(self):
        self.draws += 1
        word = splitmix((self.stream + self.draws * GOLDEN) & MASK)
        return 2.0 * ((word >> 11) + 0.5) / 2.0**53 - 1.0

    def step(self, actions):
        """Play one step and return reward, ended, won."""
        enemies = self.side("enemy")
        before = sum(body.hp + body.shield for body in enemies)
        living = sum(body.alive for body in enemies)
        actions = [a if a in self.legal(i) else 1 for i, a in enumerate(actions)]
        for body, action in zip(self.side("agent"), actions, strict=True):
            body.target = len(self.map.agents) + action - 6 if action >= 6 else -1
        for _ in range(self.map.time.ticks_per_step):
            self.tick(actions)
            if not (self.any_alive("agent") and self.any_alive("enemy")):
                break
        self.steps += 1
        won = not self.any_alive("enemy")
        over = won or not self.any_alive("agent") or self.steps == self.map.step_limit
        lost = before - sum(body.hp + body.shield for body in enemies)
        kills = living - sum(body.alive for body in enemies)
        return self.paid(lost, kills, over, won), over, won

    def paid(self, lost, kills, over, won):
        rule, enemies = self.map.reward, self.map.enemies
        if rule.kind == "sparse":
            return (1.0 if won else -1.0) if over else 0.0
        points, most = 10.0 * kills + 200.0 * won, 10.0 * len(enemies) + 200.0
        if rule.kind == "dense":
            points += max(0.0, lost)
            most += sum(placed.kind.hp + placed.kind.shield for placed in enemies)
        return points * 20.0 / most

    def legal(self, i):
        me = self.bodies[i]
        if not me.alive:
            return [0]
        ways = {2: (0, 1), 3: (0, -1), 4: (1, 0), 5: (-1, 0)}
        inside = [
            a
            for a, (dx, dy) in ways.items()
            if 1 <= me.x + dx <= self.map.width - 1 and 1 <= me.y + dy <= self.map.height - 1
        ]
        near = [6 + j for j, foe in enumerate(self.side("enemy")) if foe.alive and me.gap(foe) <= 6]
        return [1, *inside, *near]

    def tick(self, actions):
        living = [body for body in self.bodies if body.alive]
        lost = dict.fromkeys(living, 0.0)
        moves = {}
        for body in living:
            moves[body] = self.move_of(body, actions, lost)
        for body, (dx, dy) in moves.items():
            body.x, body.y = body.x + dx, body.y + dy
        for body in living:
            body.hp = max(body.hp - lost[body], 0.0)
            if body.alive:
                self.recover(body)
            else:
                body.shield = 0.0
        self.part(living)

    def move_of(self, body, actions, lost):
        """Return where a body goes; it may shoot instead."""
        step = body.kind.speed / self.map.time.ticks_per_second
        if body.side == "enemy":
            body.target = self.enemy_target(body)
        elif body.target < 0:
            ways = {2: (0, step), 3: (0, -step), 4: (step, 0), 5: (-step, 0)}
            return ways.get(actions[self.bodies.index(body)], (0, 0))
        if body.target < 0:
            start = self.map.agents
            goal_x = sum(placed.x for placed in start) / len(start)
            goal_y = sum(placed.y for placed in start) / len(start)
            return self.towards(body, goal_x, goal_y, step)
        foe = self.bodies[body.target]
        if foe in lost and not body.reaches(foe):
            return self.towards(body, foe.x, foe.y, step)
        if foe in lost and body.cooldown <= 0:
            self.shoot(body, foe, lost)
        return (0, 0)

    def towards(self, body, x, y, step):
        distance = math.hypot(x - body.x, y - body.y)
        if distance == 0:
            return (0, 0)
        share = min(step / distance, 1)
        return (x - body.x) * share, (y - body.y) * share

    def enemy_target(self, body):
        agents = {i: a for i, a in enumerate(self.side("agent")) if a.alive}

        def near(i):
            return i in agents and body.gap(agents[i]) <= body.kind.scan + self.map.leash

        if near(body.target) and body.cooldown > 0:
            return body.target
        sticky = self.map.targeting == "sticky" and near(body.target)
        if sticky and body.reaches(agents[body.target]):
            return body.target
        for sees in (body.reaches, body.notices):
            found = [i for i in agents if sees(agents[i])]
            if found:
                return min(found, key=lambda i: body.gap(agents[i]))
        return body.attacker if near(body.attacker) else -1

    def shoot(self, body, foe, lost):
        for _ in range(body.kind.hits):
            damage = body.kind.damage + (body.kind.bonus if foe.kind.armoured else 0)
            absorbed = min(foe.shield, damage)
            foe.shield -= absorbed
            if damage > absorbed:
                lost[foe] += max(damage - absorbed - foe.kind.armour, 0.5)
        foe.unhit, foe.attacker = 0.0, self.bodies.index(body)
        ticks = body.kind.cooldown_s * self.map.time.ticks_per_second
        body.cooldown = ticks + self.map.cooldown_jitter_ticks * self.draw()

    def recover(self, body):
        kind, rate = body.kind, self.map.time.ticks_per_second
        body.hp = min(body.hp + kind.hp_regeneration / rate, kind.hp)
        body.unhit += 1
        if body.unhit >= kind.shield_delay_s * rate:
            body.shield = min(body.shield + kind.shield_regeneration / rate, kind.shield)
        body.cooldown -= 1

    def part(self, bodies):
        bodies = [body for body in bodies if body.alive]
        for k, one in enumerate(bodies):
            for other in bodies[k + 1 :]:
                distance = one.gap(other)
                overlap = one.kind.radius + other.kind.radius - distance
                if overlap <= 0:
                    continue
                ux, uy = (1.0, 0.0)
                if distance > 0:
                    ux, uy = (other.x - one.x) / distance, (other.y - one.y) / distance
                shares = {
                    (True, True): (0.5, 0.5),
                    (True, False): (1, 0),
                    (False, True): (0, 1),
                    (False, False): (0, 0),
                }[one.kind.speed > 0, other.kind.speed > 0]
                one.x, one.y = one.x - shares[0] * overlap * ux, one.y - shares[0] * overlap * uy
                other.x = other.x + shares[1] * overlap * ux
                other.y = other.y + shares[1] * overlap * uy
        for body in self.bodies:
            body.x = min(max(body.x, self.map.margin), self.map.width - self.map.margin)
            body.y = min(max(body.y, self.map.margin), self.map.height - self.map.margin)

    def observation(self, i):
        """Return what agent i sees."""
        me = self.bodies[i]
        mixed = any(
            len({p.kind.name for p in side}) > 1 for side in (self.map.agents, self.map.enemies)
        )
        kinds = list(dict.fromkeys(p.kind.name for p in self.map.units)) if mixed else []

        def body_of(body):
            side = self.map.agents if body.side == "agent" else self.map.enemies
            told = [body.hp / body.kind.hp]
            if any(placed.kind.shield for placed in side):
                told.append(body.shield / body.kind.shield if body.kind.shield else 0.0)
            return told + [float(body.kind.name == kind) for kind in kinds]

        legal = self.legal(i)
        row = [float(a in legal) for a in (2, 3, 4, 5)]
        foes = self.side("enemy")
        for body in foes + [ally for ally in self.side("agent") if ally is not me]:
            first = 1.0 if body.side == "agent" else float(6 + foes.index(body) in legal)
            told = [first, me.gap(body) / 9, (body.x - me.x) / 9, (body.y - me.y) / 9]
            told += body_of(body)
            row += told if body.alive and me.gap(body) <= 9 else [0.0] * len(told)
        row += body_of(me)
        return row if me.alive else [0.0] * len(row)
