#!lua name=nearstream_store_@@
-- The functions of a store, first part: what all calls of a slot share. layout.py describes keys and values, and has the
-- constants. A function does what the method of its name does in `streams/store/part.py`, and answers in packed values.
-- keys: the facts, one that never exists, the count of calls of the lane, then those that the items need
-- arguments: `HEADER_FORMAT`, then items
-- reply: count of calls of the lane, time, an answer for each item | LOST | REBUILDING | GAP, offset up to which all is done

local function begin(keys, args, writes)
  local c, epoch, lease, known, partition = {tag = string.sub(keys[1], 1, -2), keys = keys, key_at = FIRST_KEY, renewed = {}}
  epoch, lease, known, partition, c.partitions, c.retention, c.cap = struct.unpack(HEADER_FORMAT, args[1])
  local facts = redis.call('HMGET', keys[1], 'layout', 'rebuilder', 'now')
  if string.sub(facts[1] or '', 1, EPOCH_BYTES) ~= epoch then return nil, {'LOST'} end
  if facts[2] and facts[2] ~= lease then return nil, {'REBUILDING'} end
  local count = writes and tonumber(redis.call('GET', keys[3]) or 0) or known
  if count < known then return nil, {'GAP', redis.call('HGET', keys[1], COVER_FIELD .. partition) or '-1'} end
  if writes then redis.call('SET', keys[3], count + 1, 'PX', LANE_MS) end
  c.stored_now, c.out = tonumber(facts[3]) or 0, {writes and count + 1 or count}
  c.now = c.stored_now
  return c
end

-- Make a function that gives an answer for each item.
local function define(name, writes, answer)
  local function callback(keys, args)
    local c, refusal = begin(keys, args, writes)
    if not c then return refusal end
    for i = 2, #args do c.out[i + 1] = answer(c, args[i]) end
    c.out[2] = string.format('%.f', c.now)
    if c.now > c.stored_now then redis.call('HSET', keys[1], 'now', c.out[2]) end
    return c.out
  end
  local flags = writes and {} or {'no-writes'}
  redis.register_function{function_name = 'nearstream_store_' .. name .. '_@@', callback = callback, flags = flags}
end

-- Move the time of the slot to that of an item, or to that of the server if it has none.
local function advance(c, now)
  local time = now == 0 and redis.call('TIME')
  c.now = math.max(c.now, time and time[1] * 1000 + math.floor(time[2] / 1000) or now)
end

local function is_over(c, since, retentions)
  return c.retention > 0 and since + math.floor(c.retention * retentions) < c.now
end

-- Let a key live for so many retentions from now on.
local function renew(c, key, retentions)
  if c.retention == 0 or c.renewed[key] then return end
  c.renewed[key] = redis.call('PEXPIRE', key, string.format('%.f', c.retention * retentions))
end

-- Return the key of a hash that holds something of this number, and the field there.
local function place(c, kind, number)
  local partition = number % c.partitions
  local row = (number - partition) / c.partitions
  local field = row % GROUP
  return c.tag .. kind .. struct.pack('>I5', (row - field) / GROUP * c.partitions + partition), field
end

-- Return what is known of a state: `STATE_FORMAT`, then its decision, or the notes, or what its kind says.
local function read_state(c, number)
  local s, at = {number = number, packed = redis.call('HGET', place(c, STATES_KEY, number))}, nil
  if not s.packed then return nil end
  s.flags, s.anchors, s.born, s.order, s.former, s.before, at = struct.unpack(STATE_FORMAT, s.packed)
  if s.flags < STUB and is_over(c, s.born, 1.5) then return nil end
  s.tail, s.kind = string.sub(s.packed, at), s.flags - s.flags % KINDS
  s.is_gone = s.kind > 0 or bit.band(s.flags, GONE) > 0 or is_over(c, s.born, 1)
  s.is_dead = s.is_gone or bit.band(s.flags, LATE + SUPERSEDED) > 0
  s.founder = bit.band(s.flags, DECIDED) > 0 and struct.unpack('>I5', s.tail) or 0
  return s
end

local function write_state(c, s, flag)
  local key, field = place(c, STATES_KEY, s.number)
  s.flags = bit.bor(s.flags, flag or 0)
  s.packed = struct.pack(STATE_FORMAT, s.flags, s.anchors, s.born, s.order, s.former, s.before) .. s.tail
  redis.call('HSET', key, field, s.packed)
  renew(c, key, 1.5)
end

-- Return a state of which others know before it is registered.
local function stub(number)
  return {
    number = number, flags = STUB, kind = STUB, anchors = 0, born = 0, order = string.rep('\0', ORDER_BYTES), former = 0,
    before = 0, tail = '', founder = 0, is_gone = true, is_dead = true,
  }
end
