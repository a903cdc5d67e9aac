#!lua name=nearstream_store_@@
-- A function does what the method of its name does in `streams/store/part.py`. layout.py has keys, values and constants.
-- Keys: the facts, one that never exists, the count of calls of the lane, those that the items need. Reply: that count, the
-- time, an answer for each item | LOST | REBUILDING | GAP, offset up to which all is done.
local function begin(keys, args, writes)
  local c, epoch, lease, known, partition = {tag = string.sub(keys[1], 1, -2), keys = keys, key_at = FIRST_KEY, renewed = {}}
  c.left = {}
  epoch, lease, known, partition, c.partitions, c.retention, c.cap = struct.unpack(HEADER_FORMAT, args[1])
  local facts = redis.call('HMGET', keys[1], 'layout', 'rebuilder', 'now', 'over', 'removed')
  if string.sub(facts[1] or '', 1, EPOCH_BYTES) ~= epoch then return nil, {'LOST'} end
  if facts[2] and facts[2] ~= lease then return nil, {'REBUILDING'} end
  local count = writes and tonumber(redis.call('GET', keys[3]) or 0) or known
  if count < known then return nil, {'GAP', redis.call('HGET', keys[1], COVER_FIELD .. partition) or '-1'} end
  if writes then redis.call('SET', keys[3], count + 1, 'PX', LANE_MS) end
  c.has_over, c.has_removals = facts[4], facts[5]
  c.now, c.count = tonumber(facts[3]) or 0, writes and count + 1 or count
  return c
end

-- Make a function that gives an answer for each item.
local function define(name, writes, answer)
  redis.register_function{function_name = 'nearstream_store_' .. name .. '_@@', callback = function(keys, args)
    local c, refusal = begin(keys, args, writes)
    if not c then return refusal end
    local stored_now, reply = c.now, {c.count}
    for i = 2, #args do reply[i + 1] = answer(c, args[i]) end
    reply[2] = string.format('%.f', c.now)
    if c.now > stored_now then redis.call('HSET', keys[1], 'now', reply[2]) end
    return reply
  end, flags = writes and {} or {'no-writes'}}
end

local function server_time()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Move the time of the slot to that of an item, or to that of the server if it has none.
local function advance(c, now)
  c.now = math.max(c.now, now == 0 and server_time() or now)
end

-- Return the numbers of a bucket as they are stored. One that is alone is written in digits, if they are few.
local function stored(numbers)
  if #numbers > NUMBER_BYTES then return numbers end
  local value = struct.unpack('>I5', numbers)
  return value < ALONE_BELOW and string.format('%.f', value) or '=' .. numbers
end

-- Return the numbers of a bucket.
local function numbers_in(held)
  if #held >= 2 * NUMBER_BYTES then return held end
  return string.byte(held) == 61 and string.sub(held, 2) or struct.pack('>I5', tonumber(held))
end

local function is_over(c, since, retentions)
  return c.retention > 0 and since + math.floor(c.retention * retentions) < c.now
end

-- Let a key live for a number of retentions from now on.
local function renew(c, key, retentions)
  if c.retention == 0 or c.renewed[key] then return end
  c.renewed[key] = redis.call('PEXPIRE', key, string.format('%.f', c.retention * retentions))
end

-- Return the end of the keys of the hashes that hold something of this number, and the field there.
local function place(c, number)
  local partition = number % c.partitions
  local row = (number - partition) / c.partitions
  local field = row % GROUP
  return struct.pack('>I5', (row - field) / GROUP * c.partitions + partition), field
end

-- Return what is known of a state: `STATE_FORMAT`, then its decision, or the notes, or what its kind says. One that is not
-- registered is a stub, which may have notes.
local function read_state(c, number)
  local group, field = place(c, number)
  local packed = redis.call('HGET', c.tag .. STATES_KEY .. group, field)
  if not packed or string.byte(packed) < STUB and is_over(c, struct.unpack('>I6', packed, 4), 1.5) then packed = '' end
  local flags, anchors, born, order, former, before, at = struct.unpack(STATE_FORMAT, packed == '' and NO_STATE or packed)
  local kind, tail = flags - flags % KINDS, string.sub(packed, at)
  local is_gone = kind > 0 or bit.band(flags, GONE) > 0 or is_over(c, born, 1)
  return {
    number = number, group = group, field = field, packed = packed, flags = flags, anchors = anchors, born = born,
    order = order, former = former, before = before, kind = kind, tail = tail, is_gone = is_gone,
    is_dead = is_gone or bit.band(flags, LATE + SUPERSEDED) > 0,
    founder = bit.band(flags, DECIDED) > 0 and struct.unpack('>I5', tail) or 0,
  }
end

local function write_state(c, s, flag)
  local key = c.tag .. STATES_KEY .. s.group
  s.flags = flag and bit.bor(s.flags, flag) or s.flags
  s.packed = struct.pack(STATE_FORMAT, s.flags, s.anchors, s.born, s.order, s.former, s.before) .. s.tail
  redis.call('HSET', key, s.field, s.packed)
  renew(c, key, 1.5)
end
