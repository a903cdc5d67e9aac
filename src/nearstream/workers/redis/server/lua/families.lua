-- Return a family, which is made known by the first who joins or leaves it.
local function family(c, founder)
  local f, at = {members = c.tag .. MEMBERS_KEY .. struct.pack('>I5', founder), founder = founder}, nil
  local group, field = place(c, founder)
  f.key, f.field = c.tag .. STATES_KEY .. group, GROUP + field
  local packed = redis.call('HGET', f.key, f.field)
  if packed then
    f.id, f.first_seen, f.representative, f.bare, f.last, f.count, at = struct.unpack(FAMILY_FORMAT, packed)
    f.joins = string.sub(packed, at)
    if not is_over(c, f.last, 1.5) then return f end
  end
  local s = read_state(c, founder)
  local lives = not s.is_dead and s.founder == founder
  write_state(c, s, FOLLOWED)
  f.id, f.first_seen, f.representative, f.bare, f.last, f.count, f.joins = NO_ID, 0, lives and founder or 0, 0, c.now, 1, ''
  redis.call('DEL', f.members, c.tag .. LABELLED_KEY .. struct.pack('>I5', founder))
  redis.call('ZADD', f.members, lives and 1 or -1, struct.pack('>I5', founder))
  return f
end

local function write_family(c, f)
  f.packed = struct.pack(FAMILY_FORMAT, f.id, f.first_seen, f.representative, f.bare, f.last, f.count)
  redis.call('HSET', f.key, f.field, f.packed .. f.joins)
  renew(c, f.key, 1.5)
  renew(c, f.members, 1.5)
end

-- Return the ordinal of a member, 0 if it has not joined, and whether it has left.
local function member(f, number)
  local score = tonumber(redis.call('ZSCORE', f.members, struct.pack('>I5', number)) or 0)
  return math.floor(math.abs(score)), score < 0
end

-- Note that a member has died. If it was the representative, the newest of the living is now.
local function bury(f, number)
  local ordinal = member(f, number)
  redis.call('ZADD', f.members, ordinal == 0 and LEFT_FIRST or -ordinal, struct.pack('>I5', number))
  if f.representative ~= number then return end
  local heirs = redis.call('ZREVRANGEBYSCORE', f.members, '(' .. string.format('%.f', LINK_SCORE), 1, 'LIMIT', 0, 1)
  f.representative, f.bare = heirs[1] and struct.unpack('>I5', heirs[1]) or 0, 1
end

-- Forget the members that have joined longest ago, once nothing is left of them.
local function forget_members(c, f)
  if not c.has_over then return end
  local living = redis.call('ZRANGEBYSCORE', f.members, 1, '(' .. string.format('%.f', LINK_SCORE), 'LIMIT', 0, 2)
  local left = redis.call('ZREVRANGEBYSCORE', f.members, '(0', '-inf', 'LIMIT', 0, 2)
  for _, some in ipairs({living, left}) do
    for _, member in ipairs(some) do
      local number = struct.unpack('>I5', member)
      if number ~= f.representative and is_swept(c, number) then redis.call('ZREM', f.members, member) end
    end
  end
end

-- Count a join in its slot of time, and drop the slots that no window reaches.
local function count_join(f, now)
  local slot, count = math.floor(now / SLOT_MS), 1
  if f.joins ~= '' and struct.unpack('>I4', f.joins, #f.joins - 7) == slot then
    count, f.joins = struct.unpack('>I4', f.joins, #f.joins - 3) + 1, string.sub(f.joins, 1, -9)
  end
  f.joins = f.joins .. struct.pack('>I4I4', slot, count)
  local first = math.floor((now - WEEK_MS) / SLOT_MS)
  while struct.unpack('>I4', f.joins) <= first do f.joins = string.sub(f.joins, 9) end
end

-- Remember senders or recipients for an hour, those seen last.
local function remember(c, f, letter, addresses)
  if addresses == '' then return end
  local key = c.tag .. ADDRESSES_KEY .. struct.pack('>I5', f.founder) .. letter
  for at = 1, #addresses, ADDRESS_BYTES do
    redis.call('ZADD', key, c.now, string.sub(addresses, at, at + ADDRESS_BYTES - 1))
  end
  redis.call('ZREMRANGEBYRANK', key, 0, -ADDRESSES_CAP - 1)
  redis.call('PEXPIRE', key, 2 * HOUR_MS)
end

-- Return how many sites had a member when that of an ordinal joined.
local function count_sites(members, ordinal)
  return redis.call('ZCOUNT', members, SITE_SCORE, SITE_SCORE + ordinal)
end

-- Count the site of a member, unless an earlier one has it.
local function add_site(f, site, ordinal)
  if site == NO_SITE or redis.call('ZCOUNT', f.members, SITE_SCORE, '+inf') >= SITES_CAP then return end
  redis.call('ZADD', f.members, 'LT', SITE_SCORE + ordinal, site)
end

-- Return for each link whether no other member had it before, and remember the new ones.
local function link(f, links, number)
  local news = ''
  for at = 1, #links, LINK_BYTES do
    local one = string.sub(links, at, at + LINK_BYTES - 1)
    if redis.call('ZCOUNT', f.members, LINK_SCORE, SITE_SCORE - 1) < LINKS_CAP then
      redis.call('ZADD', f.members, 'NX', LINK_SCORE + number, one)
    end
    local first = redis.call('ZSCORE', f.members, one)
    news = news .. ((not first or first - LINK_SCORE == number) and '\1' or '\0')
  end
  return news
end

-- Keep the record of a founder for a retention from now on. Return 1, or 0 if it is not there.
local function keep(c, founder)
  local key = c.tag .. KEPT_KEY .. struct.pack('>I5', founder)
  local since = redis.call('HGET', key, 't')
  if not since or is_over(c, tonumber(since), 1) then
    local s = read_state(c, founder)
    local records = c.tag .. RECORDS_KEY .. s.group
    local record = not s.is_gone and redis.call('HGET', records, s.field)
    if not record then return 0 end
    redis.call('HSET', key, 'r', record)
    redis.call('HSET', records, s.field, PATCH)  -- one that changes nothing
  end
  redis.call('HSET', key, 't', string.format('%.f', c.now))
  renew(c, key, 1)
  return 1
end

-- An item is `JOIN_FORMAT`, then links, senders, recipients. Answer: `FAMILY_FORMAT`, ordinal, count of sites, whether the
-- record of the founder is kept, for each link whether it is new.
define('join', true, function(c, item)
  local founder, number, flags, instead, id, first_seen, now, site, first_site, named, given, links, senders, at =
    struct.unpack(JOIN_FORMAT, item)
  local senders_at = at + LINK_BYTES * links
  local recipients_at = senders_at + ADDRESS_BYTES * senders
  advance(c, now)
  local f = family(c, founder)
  if f.id == NO_ID then
    f.id, f.first_seen = id, first_seen
    add_site(f, first_site, 1)
  end
  local before, has_left = member(f, number)
  local known = before > 0 and before or member(f, instead)
  local ordinal = named > 0 and named or known > 0 and known or math.max(f.count, given) + 1
  f.count = math.max(f.count, given, ordinal)
  if known == 0 then
    count_join(f, c.now)
    add_site(f, site, ordinal)
    forget_members(c, f)
    remember(c, f, SENDERS, string.sub(item, senders_at, recipients_at - 1))
    remember(c, f, RECIPIENTS, string.sub(item, recipients_at))
  end
  if before ~= ordinal then
    f.last = math.max(f.last, c.now)
    redis.call('ZADD', f.members, has_left and -ordinal or ordinal, struct.pack('>I5', number))
  end
  local news, is_full = link(f, string.sub(item, at, senders_at - 1), number), bit.band(flags, JOINS_FULL) > 0
  if bit.band(flags, JOINS_DEAD) > 0 then
    bury(f, number)
  elseif not has_left and (f.representative == 0 or f.bare == 1 and is_full) then
    f.representative, f.bare = number, is_full and 0 or 1
  end
  write_family(c, f)
  local is_kept = bit.band(flags, JOINS_KEEPING) > 0 and keep(c, founder) or 0
  return f.packed .. struct.pack('>I4I2B', ordinal, count_sites(f.members, ordinal), is_kept) .. news
end)

define('leave', true, function(c, item)
  local founder, number = struct.unpack('>I5I5', item)
  local f = family(c, founder)
  bury(f, number)
  write_family(c, f)
  return f.representative
end)

-- An item is founder and document, then number and label, or nothing to forget the label. Those marked last are kept. A
-- founder makes its family known, others belong to one that is.
define('mark', true, function(c, item)
  local founder, document, at = struct.unpack(MARK_FORMAT, item)
  local key, label = c.tag .. LABELLED_KEY .. struct.pack('>I5', founder), string.sub(item, at)
  local group, field = place(c, founder)
  if label ~= '' and struct.unpack('>I5', label) == founder then write_family(c, family(c, founder)) end
  redis.call('HDEL', key, document)
  if label == '' or redis.call('HEXISTS', c.tag .. STATES_KEY .. group, GROUP + field) == 0 then return 0 end
  redis.call('HSET', key, document, label)
  renew(c, key, 1.5)
  if redis.call('HLEN', key) > LABELS_CAP then redis.call('HDEL', key, redis.call('HKEYS', key)[1]) end
  return 0
end)

-- An item is a founder and a time. Answer: the family, count of living members, of senders, of recipients, labelled documents,
-- the time, count of sites.
define('growth', false, function(c, item)
  local founder, now = struct.unpack('>I5I6', item)
  if now == 0 then now = server_time() end
  local group, field = place(c, founder)
  local call, own, hour = redis.call, string.sub(item, 1, NUMBER_BYTES), (math.floor((now - HOUR_MS) / SLOT_MS) + 1) * SLOT_MS
  local living, addresses = call('ZCOUNT', c.tag .. MEMBERS_KEY .. own, 1, LINK_SCORE - 1), c.tag .. ADDRESSES_KEY .. own
  local senders = call('ZCOUNT', addresses .. SENDERS, hour, '+inf')
  local recipients = call('ZCOUNT', addresses .. RECIPIENTS, hour, '+inf')
  local family, marks = call('HGET', c.tag .. STATES_KEY .. group, GROUP + field), call('HGETALL', c.tag .. LABELLED_KEY .. own)
  local sites = call('ZCOUNT', c.tag .. MEMBERS_KEY .. own, SITE_SCORE, '+inf')
  return {family, living, senders, recipients, marks, string.format('%.f', now), sites}
end)
