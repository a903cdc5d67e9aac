
-- The index functions, fifth part: senders and recipients of mails. It follows labels.lua.
--
-- A family has a sorted set of the senders of the mails that joined it, and one of their recipients: keyed hashes of
-- addresses by the time when they were seen last. Both expire an hour after that.

local function addresses_key(c, family, letter)
  return c.tag .. ADDRESSES_KEY .. pack_number(family) .. letter
end

-- Return the time from which on joins belong to the last hour. It is the beginning of a slot in which joins are counted.
local function hour_start(c)
  return decimal((math.floor((c.now - WINDOWS_MS[1]) / SLOTS_MS[1]) + 1) * SLOTS_MS[1])
end

-- Drop the addresses that no answer counts any more.
local function trim_addresses(c, key)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. hour_start(c))
  redis.call('ZREMRANGEBYRANK', key, 0, -ADDRESSES_CAP - 1)
  redis.call('PEXPIRE', key, WINDOWS_MS[1])
end

-- Remember addresses, packed one after the other, of a mail that joins a family.
function families.note_addresses(c, family, letter, packed)
  if packed == '' then return end
  local key, added = addresses_key(c, family, letter), {}
  for at = 1, #packed, ADDRESS_BYTES do
    added[#added + 1] = decimal(c.now)
    added[#added + 1] = string.sub(packed, at, at + ADDRESS_BYTES - 1)
  end
  redis.call('ZADD', key, unpack(added))
  trim_addresses(c, key)
  if not c.has_addresses then redis.call('HSET', c.facts, 'addresses', '1') end
  c.has_addresses = true
end

-- Remember the addresses of a family that joins another one as a whole.
function families.bring_addresses(c, family, joining)
  if not c.has_addresses then return end
  for _, letter in ipairs({SENDERS, RECIPIENTS}) do
    local key, other = addresses_key(c, family, letter), addresses_key(c, joining, letter)
    if redis.call('ZCARD', other) > 0 then
      redis.call('ZUNIONSTORE', key, 2, key, other, 'AGGREGATE', 'MAX')
      redis.call('DEL', other)
      trim_addresses(c, key)
    end
  end
end

-- Return how many addresses sent, or received, the documents that joined a family within the last hour.
function families.count_addresses(c, family, letter)
  return redis.call('ZCOUNT', addresses_key(c, family, letter), hour_start(c), '+inf')
end
