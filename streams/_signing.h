/* What a signature says about a normal form, all of it. Included by _native.c alone. */

static void measure(Job *job, size_t spaces)
{
    const Numbers *n = &job->context->n;
    job->most_words = spaces + 1 + job->size / n->word_bytes;
    job->most_windows = job->most_words > job->firsts || !job->spaceless ? job->most_words : job->firsts;
    job->table_size = 64;
    while (2 * job->table_size < 3 * job->most_windows)
        job->table_size *= 2;
}

/* Gives each list its place in the scratch, from *at on. */
static void *take(u64 *block, size_t *at, size_t size)
{
    size_t start = *at;
    *at += size;
    return block ? block + start : NULL;
}

/* Cuts the scratch into its parts; without a block only says how many u64 they need. */
static size_t lay_out(Job *job, Result *result, u64 *block)
{
    size_t at = 0, most = job->context->n.max_symbols + 1, list = job->most_windows + 1;
    result->ld = take(block, &at, most);
    result->gaps = take(block, &at, most);
    job->prefix = take(block, &at, job->spaceless ? job->size + 1 : 0);
    job->firsts_at = take(block, &at, job->spaceless ? (job->firsts + PLACES) / 2 + 1 : 0);
    job->spaces = take(block, &at, (job->most_words + PLACES) / 2 + 1);
    job->words_prefix = take(block, &at, job->most_words + 1);
    size_t shared = at; /* the LD signature is done before the sketch begins */
    job->kept.hashes = take(block, &at, job->size + 1);
    job->kept.positions = take(block, &at, job->size / 2 + 1);
    size_t end = at;
    job->shingles = take(block, &shared, list);
    job->windows = take(block, &shared, list);
    job->spare = take(block, &shared, list);
    job->table = take(block, &shared, job->table_size);
    return end > shared ? end : shared;
}

static size_t shingles(Job *job)
{
    const Numbers *n = &job->context->n;
    size_t count = 0;
    if (job->spaceless)
        count = byte_runs(job, n->shingle_bytes, n->sketch_salt, job->shingles);
    if (!count && job->words)
        count = word_runs(job, smaller(n->shingle_words, job->words), n->sketch_salt, job->shingles);
    return distinct(job, job->shingles, count);
}

static void run_job(Job *job, Result *result)
{
    const Numbers *n = &job->context->n;
    if (n->rates)
        ld_signature(job, result);
    if (job->spaceless) {
        sum_up(job->context, job->data, job->size, job->prefix);
        places(job->data, job->size, 1, job->firsts_at);
    }
    words(job, places(job->data, job->size, 0, job->spaces));
    result->shingles = shingles(job);
    sketch(job->shingles, result->shingles, job->spare, n->sketch_bits, result->sketch);
    if (n->max_anchors)
        anchors(job, result);
}

/* ---- digests ---- */

static Digesting digesting(const Context *c, const u8 *data, size_t size)
{
    Digesting d = {.data = data, .left = size, .taken = BLOCK};
    if (!size) { /* then the block of the key is the last */
        d.data = c->key_block;
        d.left = BLOCK;
        d.taken = 0;
    }
    memcpy(d.state, size ? c->keyed : c->unkeyed, sizeof d.state);
    return d;
}

static void digests(const Job *job, const u8 *text, size_t size, Result *result)
{
    Digesting normal = digesting(job->context, job->data, job->size), raw = digesting(job->context, text, size);
    take_all(&normal, &raw);
    memcpy(result->digest, normal.state, DIGEST);
    memcpy(result->raw_digest, raw.state, DIGEST);
}
