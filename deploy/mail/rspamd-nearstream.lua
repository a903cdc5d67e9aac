-- NEARSTREAM_BULK: many copies of the message arrived within the last hour. The option of the symbol says how many.
-- NEARSTREAM_KNOWN_BAD, NEARSTREAM_KNOWN_GOOD: it is a copy of mail that was labelled as spam, or as ham. The options say
-- with which weight, and by what the labels reach it, such as equal.
-- NEARSTREAM_NEAR_BAD: it resembles such mail of few senders, or a form that many use.
-- NEARSTREAM_DISPUTED: it is a copy of spam, and of many older messages that nobody has labelled.
-- NEARSTREAM_CONTAINS_BAD: it is no copy, but has a passage of a message that was labelled as spam.
-- NEARSTREAM_ATTACHMENT_BAD: it has the attachments of mail that was labelled as spam. The options say with which weight,
-- and how many messages have had them.
-- NEARSTREAM_REFERENCE_BAD: it is like mail of a reference collection that is labelled as spam. The options say with
-- which weight, and in which collection.
-- NEARSTREAM_OTHER_ATTACHMENTS, NEARSTREAM_OTHER_LINKS: it is a copy of another message by its text, and has other
-- attachments, or links to other sites.
-- NEARSTREAM_CONTAINS_BULK: it is no copy, but contains a text of which many copies arrived within the last day. The
-- option says how many.
local rspamd_http = require 'rspamd_http'
local rspamd_logger = require 'rspamd_logger'
local ucl = require 'ucl'

local url = 'http://127.0.0.1:9465/v1/check'
local headers = { ['nearstream-collection'] = 'default' } -- and, with a token, Authorization = 'Bearer ...'
-- The value of NEARSTREAM_MAIL_AUTHSERV_ID: then our results of DKIM and DMARC go with each message, above its headers.
local authserv_id = ''

local function with_results(task)
  if authserv_id == '' then return task:get_content() end
  local results = { authserv_id, 'dkim=none', 'dmarc=none' }
  local signed = task:get_symbol('R_DKIM_ALLOW')
  for _, option in ipairs(signed and signed[1].options or {}) do
    table.insert(results, 'dkim=pass header.d=' .. tostring(option:match('^[%w.-]+')))
  end
  local from = task:get_from('mime')
  if task:has_symbol('DMARC_POLICY_ALLOW') and from and from[1] then
    table.insert(results, 'dmarc=pass header.from=' .. tostring(from[1].domain):match('^[%w.-]*'))
  end
  return 'Authentication-Results: ' .. table.concat(results, '; ') .. '\r\n' .. tostring(task:get_content())
end

local function insert(task, answer)
  local labels = type(answer.labels) == 'table' and answer.labels or {}
  if answer.verdict == 'bulk' and tonumber(answer.score) then
    task:insert_result('NEARSTREAM_BULK', tonumber(answer.score), tostring(answer.count_1h))
  elseif answer.verdict == 'known_bad' or answer.verdict == 'near_bad' or answer.verdict == 'disputed' then
    task:insert_result('NEARSTREAM_' .. answer.verdict:upper(), 1.0, { tostring(labels.spam), tostring(answer.witness) })
  elseif answer.verdict == 'known_good' then
    task:insert_result('NEARSTREAM_KNOWN_GOOD', 1.0, { tostring(labels.ham), tostring(answer.witness) })
  end
  local held = type(answer.contains) == 'table' and answer.contains or {}
  local bad = type(held.labels) == 'table' and tonumber(held.labels.spam) or 0
  if bad > 0 then
    task:insert_result('NEARSTREAM_CONTAINS_BAD', 1.0, tostring(held.labels.spam))
  elseif tonumber(held.count_24h) then
    task:insert_result('NEARSTREAM_CONTAINS_BULK', 1.0, tostring(held.count_24h))
  end
  local files = type(answer.attachments) == 'table' and answer.attachments or {}
  if type(files.labels) == 'table' and (tonumber(files.labels.spam) or 0) > 0 then
    task:insert_result('NEARSTREAM_ATTACHMENT_BAD', 1.0, { tostring(files.labels.spam), tostring(files.count) })
  end
  for _, match in ipairs(type(answer.references) == 'table' and answer.references or {}) do
    if type(match.labels) == 'table' and (tonumber(match.labels.spam) or 0) > 0 then
      task:insert_result('NEARSTREAM_REFERENCE_BAD', 1.0, { tostring(match.labels.spam), tostring(match.collection) })
    end
  end
  for _, reason in ipairs(type(answer.low_confidence) == 'table' and answer.low_confidence or {}) do
    if reason == 'attachments_differ' then task:insert_result('NEARSTREAM_OTHER_ATTACHMENTS', 1.0) end
    if reason == 'links_differ' then task:insert_result('NEARSTREAM_OTHER_LINKS', 1.0) end
  end
end

local id = rspamd_config:register_symbol({
  name = 'NEARSTREAM_BULK', group = 'nearstream', score = 3.0, description = 'Many copies within the last hour',
  callback = function(task)
    local function answered(failure, code, body)
      if failure or code ~= 200 then
        rspamd_logger.infox(task, 'no answer from nearstream: %s', failure or code)
        return
      end
      local parser = ucl.parser()
      local answer = parser:parse_text(body) and parser:get_object()
      if type(answer) == 'table' then insert(task, answer) end
    end
    local recipient = (task:get_recipients('smtp') or {})[1]
    headers['nearstream-recipient'] = recipient and recipient.addr
    rspamd_http.request({ task = task, url = url, body = with_results(task), mime_type = 'message/rfc822',
      headers = headers, timeout = 0.5, callback = answered })
  end,
})
if authserv_id ~= '' then
  for _, name in ipairs({ 'R_DKIM_ALLOW', 'DMARC_POLICY_ALLOW' }) do rspamd_config:register_dependency('NEARSTREAM_BULK', name) end
end
for name, of in pairs({
  KNOWN_BAD = { 6.0, 'A copy of mail that was labelled as spam' },
  NEAR_BAD = { 2.0, 'Resembles mail of few senders, or a form, that was labelled as spam' },
  CONTAINS_BAD = { 2.0, 'A passage of mail that was labelled as spam lies in other words' },
  ATTACHMENT_BAD = { 3.0, 'Has the attachments of mail that was labelled as spam' },
  REFERENCE_BAD = { 3.0, 'Like mail of a reference collection that is labelled as spam' },
  DISPUTED = { 0.0, 'Labelled as spam, and many older copies are not' },
  KNOWN_GOOD = { -3.0, 'A copy of mail that was labelled as ham' },
  CONTAINS_BULK = { 1.5, 'A text with many copies lies in other words' },
  OTHER_ATTACHMENTS = { 0.0, 'A copy of other mail, with other attachments' },
  OTHER_LINKS = { 0.0, 'A copy of other mail, with links to other sites' },
}) do
  rspamd_config:register_symbol({ name = 'NEARSTREAM_' .. name, type = 'virtual', parent = id, group = 'nearstream',
    score = of[1], description = of[2] })
end
