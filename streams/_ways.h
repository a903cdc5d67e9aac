/* The cheapest way through two texts: the twin of pair_loops.cheapest_way. Included by _native.c alone. */

enum { PER_STRETCH = 5, LOOK_BACK = 32, SHARES = 256 };

/* A way from the start of both texts to the end of a stretch; `bound`: of all so far, the least cost less its bytes. */
typedef struct {
    double end[2], cost, bound;
} Way;

static PyObject *cheapest_way(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const double *each, *shares;
    Py_ssize_t size, shares_size;
    double narrow, narrow_share, wide_share, least;
    if (!PyArg_ParseTuple(arguments, "y#y#(dd)dd", &each, &size, &shares, &shares_size, &narrow, &narrow_share,
                          &wide_share, &least))
        return NULL;
    if (shares_size != (SHARES + 1) * (Py_ssize_t)sizeof(double))
        return PyErr_Format(PyExc_ValueError, "%d shares expected", SHARES + 1);
    size_t stretches = (size_t)size / sizeof(double) / PER_STRETCH;
    const double *end = each + stretches * PER_STRETCH;
    Way *ways = calloc(stretches + 1, sizeof(Way)), *way = ways;
    if (!ways)
        return PyErr_NoMemory();
    for (; each < end; each += PER_STRETCH, way++) {
        double cheapest = __builtin_inf(), rest = least * (each[0] - narrow);
        for (const Way *from = way; from >= ways && from > way - LOOK_BACK && from->bound + rest < cheapest; from--) {
            double one = each[0] - from->end[0], other = each[1] - from->end[1];
            double smaller = one < other ? one : other, larger = one < other ? other : one, share = 0;
            if (smaller > 0 && larger >= smaller && larger < __builtin_inf())
                share = shares[(int)(smaller / larger * SHARES)] * (smaller < narrow ? narrow_share : wide_share);
            double cost = from->cost + (larger < 0 ? -larger : larger) - smaller + share * smaller;
            cheapest = cost < cheapest ? cost : cheapest;
        }
        double bound = cheapest - least * each[2];
        way[1] = (Way){{each[2], each[3]}, cheapest, bound < way->bound ? bound : way->bound};
    }
    double cost = way->cost;
    free(ways);
    return PyFloat_FromDouble(cost);
}
