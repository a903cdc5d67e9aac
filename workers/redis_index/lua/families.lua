-- The index functions, third part: families. It follows texts.lua and precedes functions.lua.
--
-- A member is what is stored about a state beside its record: a presumption (ordinal 0, with the representative as its
-- family, or with its own number once it was denied) until the state is settled, then the decision. The facts of a family
-- are stored from its second member on.

local families = {}
local STEPS = 8 -- of families that joined each other as a whole while their founders were in flight

-- Members -------------------------------------------------------------------------------------------------

-- Return the member of a state, or false.
function families.member(c, number)
  local state = read_state(c, number)
  if state.member == nil then
    state.member = false
    if state.packed_member then
      local family, ordinal, degraded, at = struct.unpack(MEMBER_FORMAT, state.packed_member)
      state.member = {family = family, ordinal = ordinal, degraded = degraded, pairs_at = at}
    end
  end
  return state.member
end

local function packed_member(family, ordinal, degraded, pairs)
  return struct.pack(MEMBER_FORMAT, family, ordinal, degraded) .. pairs
end

local function write_member(c, number, packed)
  local keys = state_keys(c, number)
  for i = 1, #keys do redis.call('HSET', keys[i], member_field(number), packed) end
  local state = read_state(c, number)
  state.packed_member, state.member = packed, nil
end

-- Return the pairs of a decision: for each its relation, whether its event was sent, its number, and it packed.
local function pairs_of(c, number)
  local member, list = families.member(c, number), {}
  if not member then return list end
  local packed = read_state(c, number).packed_member
  for at = member.pairs_at, #packed, PAIR_SIZE do
    local relation, candidate = struct.unpack('>BI5', packed, at)
    list[#list + 1] = {
      relation = relation % SENT, is_sent = relation >= SENT, number = candidate,
      packed = string.sub(packed, at, at + PAIR_SIZE - 1),
    }
  end
  return list
end

-- Return the founder of the family of a state, as far as that is known. A founder that others joined while it was in
-- flight may have joined another family itself. Until that is decided, what it is presumed to join counts for it alone.
function families.of(c, number)
  for step = 1, STEPS do
    local member = families.member(c, number)
    if not member or member.family == number or step > 1 and member.ordinal == 0 then break end
    number = member.family
  end
  return number
end

-- Whether this is the stored current state of its document.
local function lives(c, number)
  if number == 0 then return false end
  local state = read_state(c, number)
  return state.record ~= nil and state.superseded_by == 0
end

-- Facts ---------------------------------------------------------------------------------------------------

local function facts_key(c, family)
  return c.tag .. FAMILIES_KEY .. pack_number(math.floor(family / GROUP))
end

local function log_key(c, family)
  return c.tag .. MEMBERS_KEY .. pack_number(family)
end

-- Return the counts of joins that are stored as none: all in the slots of the last one.
local function joins_together(f)
  local slots = {}
  for width = 1, #SLOTS_MS do
    slots[width] = {width = width, slot = math.floor(f.last / SLOTS_MS[width]), count = f.count - 1}
  end
  return slots
end

local function are_together(f)
  for i = 1, #f.slots do
    local slot = f.slots[i]
    if slot.slot ~= math.floor(f.last / SLOTS_MS[slot.width]) or slot.count ~= f.count - 1 then return false end
  end
  return #f.slots == #SLOTS_MS
end

-- Return the facts of a family, or false if it has no second member.
function families.facts(c, family)
  if c.families[family] ~= nil then return c.families[family] end
  local packed, facts = redis.call('HGET', facts_key(c, family), record_field(family)), false
  if packed then
    local f = {number = family, base = 0, sent = {}, slots = {}}
    local sent, at
    f.id, f.first_seen, f.representative, f.bare, f.last, sent, f.count, at = struct.unpack(FAMILY_FORMAT, packed)
    if f.count > FEW then
      f.count, f.base, f.head, f.left, at = struct.unpack(LARGE_FORMAT, packed, at)
    else
      f.head, f.left, at = struct.unpack(SMALL_FORMAT, packed, at)
      f.log = string.sub(packed, at, at + NUMBER_BYTES * f.count - 1)
      at = at + #f.log
    end
    for _ = 1, sent do
      local relation, other
      relation, other, at = struct.unpack('>BI5', packed, at)
      f.sent[#f.sent + 1] = {relation = relation, family = other}
    end
    while at <= #packed do
      local width, slot, count
      width, slot, count, at = struct.unpack(SLOT_FORMAT, packed, at)
      f.slots[#f.slots + 1] = {width = width, slot = slot, count = count}
    end
    if #f.slots == 0 and f.last > 0 then f.slots = joins_together(f) end
    -- A family that joined another one as a whole is forgotten with its founder.
    if f.count > 0 or families.member(c, family) then facts = f end
  end
  c.families[family] = facts
  return facts
end

local function write_facts(c, f)
  local is_small = f.count <= FEW
  local parts = {
    struct.pack(FAMILY_FORMAT, f.id, f.first_seen, f.representative, f.bare, f.last, #f.sent, is_small and f.count or FEW + 1),
    is_small and struct.pack(SMALL_FORMAT, f.head, f.left) .. f.log
      or struct.pack(LARGE_FORMAT, f.count, f.base, f.head, f.left),
  }
  for i = 1, #f.sent do parts[#parts + 1] = struct.pack('>BI5', f.sent[i].relation, f.sent[i].family) end
  for i = 1, are_together(f) and 0 or #f.slots do
    local slot = f.slots[i]
    parts[#parts + 1] = struct.pack(SLOT_FORMAT, slot.width, slot.slot, slot.count)
  end
  local key = facts_key(c, f.number)
  redis.call('HSET', key, record_field(f.number), table.concat(parts))
  if c.retention > 0 then redis.call('PEXPIRE', key, lifetime(c)) end
  if c.retention > 0 and c.has_labels then
    redis.call('PEXPIRE', c.tag .. LABELLED_KEY .. pack_number(f.number), lifetime(c))
  end
  c.families[f.number] = f
end

-- Write the number of a member at its ordinal, 0 once it has left. A short log is part of the facts, which the caller
-- writes.
local function write_log(c, f, ordinal, number)
  if ordinal <= f.base then return end
  local start = NUMBER_BYTES * (ordinal - 1 - f.base)
  if f.log then
    f.log = string.sub(f.log, 1, start) .. pack_number(number) .. string.sub(f.log, start + NUMBER_BYTES + 1)
    return
  end
  local key = log_key(c, f.number)
  redis.call('SETRANGE', key, start, pack_number(number))
  if c.retention > 0 then redis.call('PEXPIRE', key, lifetime(c)) end
end

-- Return the numbers at up to `count` ordinals behind `first`.
local function read_log(c, f, first, count)
  if first < f.base then return {} end
  local start = NUMBER_BYTES * (first - f.base)
  local packed = f.log and string.sub(f.log, start + 1, start + NUMBER_BYTES * count)
    or redis.call('GETRANGE', log_key(c, f.number), start, start + NUMBER_BYTES * count - 1)
  return packed == '' and {} or unpack_packed(packed)
end

-- Return the index of a member in the log, from 0, or nil. The members of a family that joined this one as a
-- whole stand behind those that joined it before.
local function place_of(c, f, number, member)
  local ordinal = math.max(member and member.ordinal or 1, 1)
  if read_log(c, f, ordinal - 1, 1)[1] == number then return ordinal - 1 end
  if not member or member.family == f.number then return nil end
  for first = f.base, f.count - 1, LOG_READS do
    local window = read_log(c, f, first, LOG_READS)
    for i = 1, #window do
      if window[i] == number then return first + i - 1 end
    end
  end
  return nil
end

-- Note that the member at this index has left.
local function drop(c, f, place)
  if (read_log(c, f, place, 1)[1] or 0) ~= 0 then f.left = f.left + 1 end
  write_log(c, f, place + 1, 0)
end

-- Add a number behind the last one of a log.
local function append(c, f, number)
  f.count = f.count + 1
  if f.log and f.count > FEW then
    redis.call('SET', log_key(c, f.number), f.log)
    f.log = nil
  end
  write_log(c, f, f.count, number)
end

-- Drop the part of a long log that lies before its head.
local function trim_log(c, f)
  local passed = f.head - f.base
  if passed < LOG_TRIMMED or 2 * passed < f.count - f.base then return end
  local key = log_key(c, f.number)
  local rest = redis.call('GETRANGE', key, NUMBER_BYTES * passed, -1)
  write_spill(c, key, rest)
  if rest ~= '' and c.retention > 0 then redis.call('PEXPIRE', key, lifetime(c)) end
  f.base = f.head
end

-- Representatives -----------------------------------------------------------------------------------------

-- Return the numbers of the living members behind the head of a log that are in one window of it, and that window.
local function living_members(c, f, first)
  local living, window = {}, read_log(c, f, first, LOG_READS)
  for i = 1, #window do
    if lives(c, window[i]) then living[#living + 1] = window[i] end
  end
  return living, window
end

-- Return the living representative of a family, or 0. One that has expired hands on to the oldest living member.
function families.representative(c, family)
  local f = families.facts(c, family)
  if not f then return lives(c, family) and family or 0 end
  if f.representative > 0 and not lives(c, f.representative) then
    f.representative, f.bare = 0, 1
    for first = f.head, f.count - 1, LOG_READS do
      f.representative = living_members(c, f, first)[1] or 0
      if f.representative > 0 then break end
    end
  end
  return f.representative
end

-- Return the representative whose copy a state is presumed to be, or 0.
function families.presumed(c, number)
  local member = families.member(c, number)
  return member and member.ordinal == 0 and member.family ~= number and member.family or 0
end

-- Whether a state without a decision has entered the buckets that it left out.
function families.was_denied(c, number)
  local member = families.member(c, number)
  return member and member.ordinal == 0 and member.family == number
end

-- Note that a state has entered the buckets that it left out.
function families.deny(c, number)
  if families.presumed(c, number) == 0 then return end
  local former = families.of(c, number)
  write_member(c, number, packed_member(number, 0, 0, ''))
  families.forget_label(c, former, number)
  families.note_label(c, number)
end

-- Whether copies of this state join its family. Each member does that of a family whose representative is gone.
function families.represents(c, number)
  local representative = families.representative(c, families.of(c, number))
  return representative == 0 or representative == number and families.presumed(c, number) == 0
end

-- Whether copies of this state may rely on the buckets that its family is in. A representative that took the place of
-- another may be in few of them.
function families.has_all_keys(c, number)
  local family = families.of(c, number)
  local f = families.facts(c, family)
  if f then return f.bare == 0 end
  return family == number
end

-- Return the living representative that a dead state leads to, or 0.
function families.heir(c, number)
  local family = families.of(c, number)
  return families.facts(c, family) and families.representative(c, family) or 0
end

-- Let the oldest living member with the text of a state represent a family, else the oldest living one. Members that have
-- expired leave the family when its head passes them.
local function hand_on(c, f, number)
  local living, window, first, version = {}, nil, nil, read_state(c, number).version
  repeat
    local head = f.head
    living, window = living_members(c, f, head)
    first = living[1]
    while f.head - head < #window and window[f.head - head + 1] ~= first do
      if window[f.head - head + 1] ~= 0 then drop(c, f, f.head) end
      f.head = f.head + 1
    end
  until first or #window == 0
  living = living_members(c, f, f.head)
  trim_log(c, f)
  f.representative, f.bare = living[1] or 0, 1
  for i = #living, 1, -1 do
    if version and read_state(c, living[i]).version == version then f.representative = living[i] end
  end
end

-- Note that a state has died: it was removed, or another state of its document is current. Its own record is passed
-- over, though it may still be stored.
function families.leave(c, number)
  local f = families.facts(c, families.of(c, number))
  if not f or families.presumed(c, number) > 0 then return end
  local place = place_of(c, f, number, families.member(c, number))
  if place then drop(c, f, place) end
  if f.representative == number then hand_on(c, f, number) end
  write_facts(c, f)
end

-- Give a member another number, because its document was seen again late in its life.
function families.renumber(c, number, renewed)
  local member, f = families.member(c, number), families.facts(c, families.of(c, number))
  if not f or member and member.ordinal == 0 then
    write_member(c, renewed, packed_member(renewed, math.max(member and member.ordinal or 1, 1), 0, ''))
    return
  end
  write_member(c, renewed, packed_member(member and member.family or number, member and member.ordinal or 1, 0, ''))
  local place = place_of(c, f, number, member)
  if place then write_log(c, f, place + 1, renewed) end
  if f.representative == number then f.representative, f.bare = renewed, 0 end
  write_facts(c, f)
end

-- Answer the record of a state too. Return whether it has one.
local function want(c, number)
  local state = read_state(c, number)
  if not state.record then return false end
  c.wanted[number] = c.wanted[number] or whole_record(state)
  return true
end

-- Whether enough of the shared keys are rare. Where every pair has its event, this never counts.
local function shares_rare(c, count)
  if c.per_family == 0 then return true end
  if count < RARE_KEYS * RARE then return false end
  return math.floor(count / RARE) * RARE_PART >= count % BAND + math.floor(count / BAND) % (WEIGHT / BAND)
end

-- Return a candidate as answers contain it. `count` is a sum of shared keys as BAND describes it.
local function pack_candidate(c, number, count, flags)
  want(c, number)
  if families.represents(c, number) then flags = flags + REPRESENTS end
  if shares_rare(c, count) then flags = flags + SHARES_RARE end
  return struct.pack(CANDIDATE_FORMAT, number, math.floor(count / BAND) % (WEIGHT / BAND), count % BAND, flags)
end

-- Return the stored facts of the family of a state, after the number of its founder. They are '' if it has no second
-- member. The answer has the record of its founder then.
function families.packed(c, number)
  local family = families.of(c, number)
  local f = families.facts(c, family)
  if f and f.count > 1 then return family, redis.call('HGET', facts_key(c, family), record_field(family)) end
  want(c, family)
  return family, ''
end

-- Settling ------------------------------------------------------------------------------------------------

-- Count a join in each window, and drop the slots that no window reaches.
local function count_join(c, f)
  local kept, counted = {}, {}
  for i = 1, #f.slots do
    local slot = f.slots[i]
    local width = SLOTS_MS[slot.width]
    if slot.slot > math.floor((c.now - WINDOWS_MS[slot.width]) / width) then
      if slot.slot == math.floor(c.now / width) then
        slot.count, counted[slot.width] = slot.count + 1, true
      end
      kept[#kept + 1] = slot
    end
  end
  for width = 1, #SLOTS_MS do
    if not counted[width] then
      kept[#kept + 1] = {width = width, slot = math.floor(c.now / SLOTS_MS[width]), count = 1}
    end
  end
  f.slots, f.last = kept, c.now
end

-- Return the facts of a family, which are made when its first copy joins it.
local function facts_for_join(c, s, founder)
  local f = families.facts(c, founder)
  if f then return f end
  f = {
    number = founder, id = s.id, first_seen = s.first_seen, representative = founder, bare = 0, count = 0, base = 0,
    head = 0, left = 0, last = 0, sent = {}, slots = {}, log = '',
  }
  local list = pairs_of(c, founder)
  for i = 1, #list do
    local other = families.of(c, list[i].number)
    if list[i].is_sent and other ~= founder then
      f.sent[#f.sent + 1] = {relation = list[i].relation, family = other}
    end
  end
  append(c, f, founder)
  if not lives(c, founder) then
    f.representative = 0
    drop(c, f, 0)
  end
  return f
end

-- Let another state of a document take the place of its former one.
local function keep_place(c, f, number, ordinal)
  if not lives(c, number) then return end
  if ordinal == 0 then
    append(c, f, number)
  elseif ordinal > f.base then
    if (read_log(c, f, ordinal - 1, 1)[1] or 0) == 0 then f.left = f.left - 1 end
    write_log(c, f, ordinal, number)
    f.head = math.min(f.head, ordinal - 1)
  end
  local is_thin = families.presumed(c, number) > 0
  local is_founder_again = ordinal == 1 and f.bare > 0 and not is_thin
  if is_founder_again or families.representative(c, f.number) == 0 then
    f.representative, f.bare = number, is_thin and 1 or 0
  end
end

-- Take in the family that a new member founded while it was in flight, which keeps its id in verdicts.
local function bring(c, f, number)
  local own = families.facts(c, number)
  if not own then return end
  for first = own.base, own.count - 1, LOG_READS do
    local window = read_log(c, own, first, LOG_READS)
    for i = 1, #window do
      if window[i] ~= 0 and window[i] ~= number then append(c, f, window[i]) end
    end
  end
  for i = 1, #own.slots do
    local same
    for j = 1, #f.slots do
      if f.slots[j].width == own.slots[i].width and f.slots[j].slot == own.slots[i].slot then same = f.slots[j] end
    end
    if same then same.count = same.count + own.slots[i].count else f.slots[#f.slots + 1] = own.slots[i] end
  end
  families.bring_labels(c, f.number, number)
  families.bring_addresses(c, f.number, number)
  for i = 1, #own.sent do f.sent[#f.sent + 1] = own.sent[i] end
  while #f.sent > SENT_CAP do table.remove(f.sent, 1) end
  redis.call('DEL', log_key(c, number))
  own.count, own.base, own.head, own.left, own.representative, own.log = 0, 0, 0, 0, 0, ''
  write_facts(c, own)
end

-- Let a new member that is in all its buckets take over from one that is old or in few.
local function represent(c, f, number)
  local is_thin = families.presumed(c, number) > 0
  if families.representative(c, f.number) == 0 then
    f.representative, f.bare = number, is_thin and 1 or 0
  elseif not is_thin and (f.bare > 0 or is_aging(c, f.representative)) then
    f.representative, f.bare = number, 0
  end
end

-- Count a new member, with those who joined it while it was in flight, and return its ordinal.
local function join(c, f, s)
  families.note_addresses(c, f.number, SENDERS, s.sender)
  families.note_addresses(c, f.number, RECIPIENTS, s.recipients)
  -- A call that failed before it wrote the member has counted it.
  if read_log(c, f, f.count - 1, 1)[1] == s.number then return f.count end
  append(c, f, s.number)
  local ordinal = f.count
  count_join(c, f)
  if not lives(c, s.number) then drop(c, f, ordinal - 1) end
  bring(c, f, s.number)
  if families.representative(c, f.number) > 0 then spare_now(c, f.representative) end
  if lives(c, s.joins) then spare_now(c, s.joins) end
  if lives(c, s.number) then represent(c, f, s.number) end
  return ordinal
end

local function knows(f, pair, other)
  for i = 1, #f.sent do
    if f.sent[i].relation == pair.relation and f.sent[i].family == other then return true end
  end
  return false
end

-- Whether the event of a pair is sent. `counts` has the events with each family so far.
local function is_sent(c, f, family, ordinal, pair, counts)
  if pair.sending == NEVER or not read_state(c, pair.number).record then return false end
  local other = families.of(c, pair.number)
  local limit = other == family and c.per_family > 0 and 1 or c.per_family
  local known = f and knows(f, pair, other)
  if pair.sending == ONCE and limit > 0 then
    if other ~= family and ordinal > 1 and known then return false end
    if (counts[other] or 0) >= limit then return false end
  end
  counts[other] = (counts[other] or 0) + 1
  if f and other ~= family and not known then
    f.sent[#f.sent + 1] = {relation = pair.relation, family = other}
    if #f.sent > SENT_CAP then table.remove(f.sent, 1) end
  end
  return true
end

-- Decide which events are sent. Return the pairs to be stored, theirs and the first one, and whether the family has
-- another relation to remember.
local function choose_pairs(c, f, family, ordinal, s)
  local counts, stored, known = {}, {}, f and #f.sent
  local last = f and f.sent[known]
  for _, turn in ipairs({ALWAYS, ONCE}) do
    for i = 1, #s.pairs do
      local pair = s.pairs[i]
      if pair.sending == turn then pair.is_sent = is_sent(c, f, family, ordinal, pair, counts) end
    end
  end
  for i = 1, #s.pairs do
    local pair = s.pairs[i]
    if (pair.is_sent or i == 1) and #stored < PAIRS_CAP then
      stored[#stored + 1] = string.char(pair.relation + (pair.is_sent and SENT or 0)) .. pair.candidate
    end
    if pair.is_sent then
      local first = math.min(s.number, pair.number)
      if is_aging(c, first) and read_state(c, first).superseded_by == 0 then spare_now(c, first) end
    end
  end
  return table.concat(stored), f and (#f.sent ~= known or f.sent[#f.sent] ~= last)
end

-- Return the membership of a state that is joined, and the founder of its family.
local function joined_family(c, target)
  local joined = families.member(c, target) or {family = target, ordinal = 0}
  return joined, joined.ordinal > 0 and families.of(c, target) or target
end

-- Record the decision about a state.
local function decide(c, s)
  local former, family, ordinal, f = families.of(c, s.number), s.number, 1, nil
  if s.joins > 0 and families.of(c, s.joins) ~= s.number then
    local joined, founder = joined_family(c, s.joins)
    f = facts_for_join(c, s, founder)
    if bit.band(s.flags, KEEPS) > 0 then
      family, ordinal = s.joins, 1
      if joined.ordinal > 0 then family, ordinal = joined.family, joined.ordinal end
      keep_place(c, f, s.number, family == founder and ordinal or 0)
    else
      family, ordinal = founder, join(c, f, s)
    end
    write_facts(c, f)
  end
  -- The family is known first, because the events of a family depend on it.
  local state = read_state(c, s.number)
  state.member = {family = family, ordinal = ordinal, degraded = s.degraded, pairs_at = MEMBER_SIZE + 1}
  local own = families.of(c, s.number)
  f = families.facts(c, own)
  local stored, remembers = choose_pairs(c, f, own, ordinal, s)
  if own ~= former then families.forget_label(c, former, s.number) end
  families.note_label(c, s.number) -- before the decision is written, so that a call that fails halfway does this again
  write_member(c, s.number, packed_member(family, ordinal, s.degraded, stored))
  if f and remembers then write_facts(c, f) end
end

-- Return the family of a decision as answers contain it.
function families.view(c, number)
  local member = families.member(c, number)
  local f, is_stored = families.facts(c, member.family), want(c, member.family)
  return struct.pack(VIEW_FORMAT, families.of(c, number), member.family, member.ordinal, member.degraded,
    f and f.id or string.rep('\0', FAMILY_ID_BYTES), f and f.first_seen or 0, is_stored and 1 or 0)
end

-- Return a decision as answers contain it: the view of the family, then the pairs. The candidate of a pair that is gone
-- has the flag GONE alone.
function families.decision(c, number)
  local list, parts = pairs_of(c, number), {families.view(c, number)}
  for i = 1, #list do
    local pair = list[i]
    if want(c, pair.number) then
      parts[#parts + 1] = pair.packed
    else
      parts[#parts + 1] = string.sub(pair.packed, 1, -2) .. string.char(GONE)
    end
  end
  return table.concat(parts)
end

-- Return the settlement of an argument.
local function parse_settlement(packed)
  local s, at = {pairs = {}}, nil
  local senders, recipients, size
  s.number, s.joins, s.flags, s.degraded, s.id, s.first_seen, senders, recipients, size, at =
    struct.unpack(SETTLEMENT_FORMAT, packed)
  local from, behind = at + ADDRESS_BYTES * senders, at + ADDRESS_BYTES * (senders + recipients)
  s.sender, s.recipients, at = string.sub(packed, at, from - 1), string.sub(packed, from, behind - 1), behind + size
  s.patch = string.sub(packed, behind, at - 1)
  for start = at, #packed, PAIR_SIZE + 1 do
    local relation, sending, number = struct.unpack('>BBI5', packed, start)
    s.pairs[#s.pairs + 1] = {
      relation = relation, sending = sending, number = number,
      candidate = string.sub(packed, start + 2, start + PAIR_SIZE),
    }
  end
  return s
end

-- Whether a state that keeps its family left out buckets for the representative of another one.
local function relies_on_others(c, s)
  local presumed = families.presumed(c, s.number)
  local _, founder = joined_family(c, s.joins)
  return presumed > 0 and families.of(c, presumed) ~= founder
end

-- Return the answer to a settlement whose family cannot be joined like this, else nil.
local function unready(c, s)
  local target, is_exact = s.joins, bit.band(s.flags, EXACT) > 0
  if target == 0 then return nil end
  if bit.band(s.flags, KEEPS) > 0 then return relies_on_others(c, s) and IS_REFUSED or nil end
  if families.of(c, target) == s.number then return IS_REFUSED end
  local state = read_state(c, target)
  -- A state that was superseded meanwhile was alive when this one got its number.
  local was_alive = state.record and (state.superseded_by == 0 or state.superseded_by > s.number)
  local representative, is_presumed = families.representative(c, families.of(c, target)), families.presumed(c, target) > 0
  if is_presumed and was_alive and not (is_exact and representative > 0) then return nil end
  if representative == 0 then return not was_alive and IS_REFUSED or nil end
  if representative == target or is_exact and was_alive and not is_presumed then return nil end
  return FOLLOWS .. pack_candidate(c, representative, 0, 0)
end

-- Record a decision, unless there is one, and return the answer: the view of the family, then a byte for each pair.
function families.settle(c, packed)
  local s = parse_settlement(packed)
  if not read_state(c, s.number).record then return IS_GONE end
  local member = families.member(c, s.number)
  if not member or member.ordinal == 0 then
    local again = unready(c, s)
    if again then return again end
    decide(c, s)
  end
  if s.patch ~= '' then texts.store_patch(c, s.number, s.joins, s.patch) end
  local sent, known, list = {}, {}, pairs_of(c, s.number)
  for i = 1, #list do
    if list[i].is_sent then known[list[i].relation * SPAN + list[i].number] = true end
  end
  for i = 1, #s.pairs do sent[i] = known[s.pairs[i].relation * SPAN + s.pairs[i].number] and '1' or '0' end
  return IS_SETTLED .. families.view(c, s.number) .. table.concat(sent)
end
