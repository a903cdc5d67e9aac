-- An item is a state, the asker, and whether the record is wanted. Answer: the state, or a list that has its record, the
-- family that it founded, the score of the asker there, and the count of sites of those who had joined when it did.
define('fetch', false, function(c, item)
  local number, asker, wants_record = struct.unpack(QUERY_FORMAT, item)
  local group, field = place(c, number)
  local call, key = redis.call, c.tag .. STATES_KEY .. group
  local s = call('HGET', key, field)
  local family = (not s or bit.band(string.byte(s), FOLLOWED) > 0) and call('HGET', key, GROUP + field)
  if not family and wants_record == 0 then return s end
  local record = wants_record > 0 and call('HGET', c.tag .. RECORDS_KEY .. group, field)
  local members = c.tag .. MEMBERS_KEY .. string.sub(item, 1, NUMBER_BYTES)
  local score = family and asker > 0 and call('ZSCORE', members, struct.pack('>I5', asker))
  return {s, record, family, score, score and tostring(count_sites(members, math.floor(math.abs(tonumber(score)))))}
end)

-- An item is a state, and the one that goes on without it. Answer: the state, and whether it is gone.
define('note', true, function(c, item)
  local number, by = struct.unpack('>I5c5', item)
  local s = read_state(c, number)
  local is_gone = s.kind < STUB and s.is_gone
  if s.founder == 0 and not is_gone then
    s.tail = s.tail .. by
    write_state(c, s)
  end
  return {s.packed, is_gone and 1 or 0}
end)

-- An item is `PROPOSAL_FORMAT`, then the decision, which holds if its matcher has seen all notes. Answer: 1 if it holds and the state is dead, 0 if it is alive, or else the state, or nothing if it is gone.
define('decide', true, function(c, item)
  local number, seen, at = struct.unpack(PROPOSAL_FORMAT, item)
  local s = read_state(c, number)
  if s.is_gone then return '' end
  if s.founder > 0 or #s.tail > NUMBER_BYTES * seen then return s.packed end
  s.tail = string.sub(item, at)
  write_state(c, s, DECIDED)
  if not s.is_dead and bit.band(s.flags, FOLLOWED) > 0 and struct.unpack('>I5', s.tail) == number then
    local family = {members = c.tag .. MEMBERS_KEY .. struct.pack('>I5', number)}
    redis.call('ZADD', family.members, 'XX', (member(family, number)), struct.pack('>I5', number))
  end
  return s.is_dead and 1 or 0
end)

-- An item is a state, and the record that takes the place of the one that is there.
define('shorten', true, function(c, item)
  local group, field = place(c, (struct.unpack('>I5', item)))
  local key = c.tag .. RECORDS_KEY .. group
  if redis.call('HEXISTS', key, field) == 1 then redis.call('HSET', key, field, string.sub(item, NUMBER_BYTES + 1)) end
  return 0
end)

-- An item is a founder. Answer: its record, if it is kept.
define('kept', false, function(c, item)
  local got = redis.call('HMGET', c.tag .. KEPT_KEY .. item, 't', 'r')
  return got[1] and not is_over(c, tonumber(got[1]), 1) and got[2]
end)

-- An item is a partition, the offset up to which all its records are done, and the time: slots whose documents are few
-- have none that is fit for those of others.
define('cover', true, function(c, item)
  local partition, offset, now = struct.unpack('>I2I6I6', item)
  advance(c, now)
  local known = tonumber(redis.call('HGET', c.keys[1], COVER_FIELD .. partition) or -1)
  redis.call('HSET', c.keys[1], COVER_FIELD .. partition, string.format('%.f', math.max(known, offset - 1)))
  mark_time(c, partition, math.max(known + 1, offset))
  return 0
end)
